#include "engine/loader.h"

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "base/format.h"
#include "device/reason.h"
#include "engine/measured.h"
#include "engine/packed.h"
#include "runtime/memory_check.h"

namespace gimbal {
namespace {

// Failures that another device may not have.
bool is_of_the_device(Code c) { return c == Code::OutOfMemory || c == Code::DeviceLost || c == Code::Failed; }

}  // namespace

std::vector<std::string> replaceable(const ModelPlan& b) {
  std::vector<std::string> all;
  for (const Stage& stage : b.stages) {
    const std::string id = stage.device->id();
    if (!is_host(*stage.device) && std::find(all.begin(), all.end(), id) == all.end()) all.push_back(id);
  }
  return all;
}

Loader::Loader(const EngineOptions& options, Devices& devices, DeviceRecord& record)
    : options_(options),
      devices_(devices),
      record_(record),
      verifier_(options.verify, [&record](const Device& d, size_t done, size_t total) {
        return record.emit(event::Progress{event::Progress::Verifying, d.id(), done, total});
      }) {}

Result<PlannedModel> Loader::plan(const ModelFile& source) {
  auto planned = devices_.place(source);
  if (!planned) return planned;
  auto larger = with_larger_cache(*planned->source.file, std::move(planned->plan), options_.cache);
  if (!larger) return larger.error();
  planned->plan = std::move(*larger);
  std::vector<Fallback>& all = planned->fallbacks;
  all.insert(all.end(), record_.fallbacks.begin(), record_.fallbacks.end());
  if (auto ok = use_packed(*planned); !ok) return ok.error();
  return planned;
}

// Without it, every start checks everything.
void Loader::emit_not_kept() {
  if (verifier_.not_kept() && !std::exchange(not_kept_emitted_, true))
    record_.emit(event::NotKept{*verifier_.not_kept()});
}

// False if the next plan must leave something out.
Result<bool> Loader::verify(const PlannedModel& p, bool anew) {
  const size_t before = record_.unusable.size();
  auto give_up_device = [&](const Device& d, Error why) {
    return record_.give_up({d.id(), "", std::move(why)}, Fallback::Refused);
  };
  for (const Stage& stage : p.plan.stages) {
    auto wrong = verifier_.wrong_kernels(stage, anew);
    emit_not_kept();
    if (!wrong && wrong.error().code != Code::DeviceLost) return wrong.error();
    if (!wrong) {
      if (auto ok = give_up_device(*stage.device, wrong.error()); !ok) return ok.error();
      return false;
    }
    for (Quarantined& q : *wrong) {
      if (record_.is_unusable(q.device, q.kernel)) continue;
      Error why{Code::Failed, q.why, "", reason::kVerificationFailed};
      if (auto ok = record_.give_up({q.device, q.kernel, std::move(why)}, Fallback::Kernel); !ok)
        return ok.error();
    }
  }
  if (record_.unusable.size() != before) return false;
  for (const Stage& stage : p.plan.stages) {
    const Device& d = *stage.device;
    // A draft-only model is checked by the model that it drafts for; an encoder of pictures has no tokens.
    if (is_host(d) || p.plan.takes_states || p.plan.takes_patches || !verifier_.is_new(d, *p.source.file))
      continue;
    auto host = devices_.open_host();
    if (!host) continue;  // without the CPU backend there is no reference
    RunOptions run = record_.run_options();
    run.tensor_rules = p.plan.options.tensor_rules;  // the device may lack kernels for the moved ops
    run.experts_from_disk = 0;                       // of a few layers alone
    auto right = verifier_.check_layers(*p.source.file, d, **host, run);
    // Both at once may exceed a device that takes only a part of the model.
    if (right || right.error().code == Code::OutOfMemory) continue;
    if (right.error().code == Code::Malformed) return right.error();  // the file, not the device
    Error why = right.error();
    why.reason = reason::kVerificationFailed;
    if (auto ok = give_up_device(d, std::move(why)); !ok) return ok.error();
    return false;
  }
  return true;
}

Result<PlannedModel> Loader::plan_verified(const ModelFile& source) {
  if (options_.verify == Verify::Never) return plan(source);
  std::string device;  // of the last plan
  for (bool anew = options_.verify == Verify::Always;; anew = false) {
    auto planned = plan(source);
    if (!planned) {
      // Without its unusable kernels the device cannot compute this model: use another one.
      const bool for_want_of_kernels =
          planned.error().code == Code::Unsupported && record_.lost_kernels(device);
      if (!for_want_of_kernels) return planned.error();
      Error why = planned.error();
      why.reason = reason::kVerificationFailed;
      if (auto ok = record_.give_up({std::exchange(device, ""), "", std::move(why)}, Fallback::Refused); !ok)
        return ok.error();
      continue;
    }
    device = planned->opened.device->id();
    auto right = verify(*planned, anew);
    if (!right) return right.error();
    if (*right) return planned;
  }
}

// The winners are then verified, too.
Result<PlannedModel> Loader::plan_measured(const ModelFile& source) {
  auto planned = plan_verified(source);
  if (!planned || options_.verify == Verify::Never) return planned;
  auto added =
      measure_products(planned->plan, record_.measured, [this](const Device& d, size_t done, size_t total) {
        return record_.emit(event::Progress{event::Progress::Measuring, d.id(), done, total});
      });
  if (!added) return added.error();
  if (!*added) return planned;
  planned = Error{};  // releases its devices first
  return plan_verified(source);
}

static event::Offloaded offloaded(const ModelPlan& plan) {
  std::vector<std::string> devices;
  std::vector<int> layers;
  for (const Stage& s : plan.stages) {
    if (is_host(*s.device) || !s.layers) continue;
    devices.push_back(s.device->id()), layers.push_back(s.layers);
  }
  event::Offloaded o{std::accumulate(layers.begin(), layers.end(), 0), plan.config.layers, ""};
  for (size_t i = 0; i < devices.size(); i++) {
    o.devices += i == 0 ? "" : i + 1 < devices.size() ? ", " : " and ";
    o.devices += devices.size() > 1 ? format("{} ({})", devices[i], layers[i]) : devices[i];
  }
  return o;
}

Result<LoadedModelPtr> Loader::load(const ModelFile& source) {
  const double begin = now();
  bool first = true;
  for (;;) {
    auto planned = plan_measured(source);
    if (!planned) return planned.error();
    const ModelPlan& b = planned->plan;
    if (first && b.options.context > b.config.context)
      record_.emit(event::LongContext{b.options.context, b.config.context});
    first = false;
    const std::vector<std::string> devices = replaceable(b);
    auto loaded = load_once(std::move(*planned));
    if (loaded) {
      (*loaded)->load_seconds = now() - begin;
      if (options_.gpu_layers || !options_.split.empty()) record_.emit(offloaded((*loaded)->model->plan()));
      return loaded;
    }
    if (loaded.error().reason == std::string_view(reason::kPackedUnusable)) {
      damaged_.push_back(loaded.error());
      continue;
    }
    // The plan fitted, but the driver refused; or its results are wrong: try the next device.
    if (devices.empty() || options_.strict || !is_of_the_device(loaded.error().code)) return loaded.error();
    for (const std::string& id : devices)
      if (auto ok = record_.give_up({id, "", loaded.error()}, Fallback::Refused); !ok) return ok.error();
  }
}

Result<LoadedModelPtr> Loader::load_once(PlannedModel&& p) {
  auto loaded = std::make_shared<LoadedModel>(LoadedModel{
      std::move(p.source), std::move(p.opened), std::move(p.others), std::move(p.fallbacks), nullptr});
  const std::string device = p.plan.device().id();
  for (const Stage& stage : p.plan.stages)
    if (stage.packed && options_.verify != Verify::Never)
      if (auto ok = check_once(*stage.packed, options_.verify == Verify::Always); !ok) return ok.error();
  if (options_.before_taking && fits(p.plan))
    if (auto ok = options_.before_taking(p.plan); !ok) return ok.error();
  auto model = Model::load(std::move(p.plan), *loaded->source.file, [&](uint64_t done, uint64_t total) {
    return record_.emit(event::Progress{event::Progress::Loading, device, done, total});
  });
  if (!model) return model.error();
  loaded->model = std::move(*model);
  if (!loaded->model->plan().takes_states && !loaded->model->plan().takes_patches) {
    auto right = verifier_.try_out(*loaded->model, *loaded->source.file, loaded->source.name);
    emit_not_kept();
    if (!right) return right.error();
  }
  loaded->at_start = loaded->model->receipt();
  return loaded;
}

}  // namespace gimbal
