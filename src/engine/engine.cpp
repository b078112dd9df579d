#include "engine/engine.h"

#include <algorithm>
#include <chrono>

#include "base/format.h"
#include "device/reason.h"
#include "engine/measured.h"
#include "engine/packed.h"
#include "runtime/memory_check.h"

namespace gimbal {
namespace {

// "metal:0, vulkan:1": the devices of a plan that another one can stand in for; empty: there are none.
std::vector<std::string> replaceable(const ModelPlan& b) {
  std::vector<std::string> all;
  for (const Stage& stage : b.stages) {
    const std::string id = stage.device->id();
    if (!is_host(*stage.device) && std::find(all.begin(), all.end(), id) == all.end()) all.push_back(id);
  }
  return all;
}

// Failures that another device may not have.
bool is_of_the_device(Code c) { return c == Code::OutOfMemory || c == Code::DeviceLost || c == Code::Failed; }

}  // namespace

Engine::Engine(Registry& registry, EngineOptions options, EventSink events)
    : registry_(registry),
      options_(std::move(options)),
      events_(std::move(events)),
      first_use_(options_.verify, [this](const Device& d, size_t done, size_t total) {
        return emit(event::Progress{event::Progress::Verifying, d.id(), done, total});
      }) {
  options_.run.kernels.strict = options_.strict;
}

bool Engine::emit(const Event& e) const { return !events_ || events_(e); }

RunOptions Engine::run_options() const {
  RunOptions run = options_.run;
  run.kernels.measured = measured_;
  for (const Unusable& u : unusable_)
    if (!u.kernel.empty()) run.kernels.quarantined.push_back({u.kernel, u.why.message, u.device});
  return run;
}

Status Engine::give_up(Unusable what, Fallback::Kind kind) {
  Fallback f{kind, kind == Fallback::Kernel ? what.kernel : what.device, "", what.why};
  if (options_.strict) {
    Error refused = std::move(f.why);
    refused.code = Code::NoBackend;
    refused.message = format("{} is not used: {}", f.what, refused.message);
    refused.changes.push_back({"strict", "false", "takes the next best"});
    return refused;
  }
  emit(f);
  fallbacks_.push_back(std::move(f));
  unusable_.push_back(std::move(what));
  return Done{};
}

// Without it everything is checked at every start.
void Engine::tell_not_kept() {
  if (first_use_.not_kept() && !std::exchange(told_not_kept_, true))
    emit(event::NotKept{*first_use_.not_kept()});
}

// False when something was found that the next plan must leave out.
Result<bool> Engine::verify(const PlannedModel& p, bool anew) {
  const size_t before = unusable_.size();
  auto give_up_device = [&](const Device& d, Error why) {
    return give_up({d.id(), "", std::move(why)}, Fallback::Refused);
  };
  for (const Stage& stage : p.plan.stages) {
    auto wrong = first_use_.wrong_kernels(stage, anew);
    tell_not_kept();
    if (!wrong && wrong.error().code != Code::DeviceLost) return wrong.error();
    if (!wrong) {
      if (auto ok = give_up_device(*stage.device, wrong.error()); !ok) return ok.error();
      return false;
    }
    for (Quarantined& q : *wrong) {
      if (std::any_of(unusable_.begin(), unusable_.end(),
                      [&](const Unusable& u) { return u.device == q.device && u.kernel == q.kernel; }))
        continue;
      Error why{Code::Failed, q.why, "", reason::kVerificationFailed};
      if (auto ok = give_up({q.device, q.kernel, std::move(why)}, Fallback::Kernel); !ok) return ok.error();
    }
  }
  if (unusable_.size() != before) return false;
  for (const Stage& stage : p.plan.stages) {
    const Device& d = *stage.device;
    // What only drafts is checked by the model that it drafts for.
    if (is_host(d) || p.plan.takes_states || !first_use_.is_new(d, *p.source.file)) continue;
    auto host = open_host();
    if (!host) continue;  // a program without the CPU backend has nothing to compare with
    auto right = first_use_.check_layers(*p.source.file, d, **host, run_options());
    // Both at once may be more than a device holds that only takes a part of the model.
    if (right || right.error().code == Code::OutOfMemory) continue;
    if (right.error().code == Code::Malformed) return right.error();  // the file, not the device
    Error why = right.error();
    why.reason = reason::kVerificationFailed;
    if (auto ok = give_up_device(d, std::move(why)); !ok) return ok.error();
    return false;
  }
  return true;
}

Result<PlannedModel> Engine::plan_verified(const ModelFile& source) {
  if (options_.verify == Verify::Never) return plan(source);
  std::string device;  // of the last plan
  for (bool anew = options_.verify == Verify::Always;; anew = false) {
    auto planned = plan(source);
    if (!planned) {
      // Without the kernels that are not used, the device does not compute this model: so another one must.
      const bool for_want_of_kernels =
          planned.error().code == Code::Unsupported &&
          std::any_of(unusable_.begin(), unusable_.end(),
                      [&](const Unusable& u) { return u.device == device && !u.kernel.empty(); });
      if (!for_want_of_kernels) return planned.error();
      Error why = planned.error();
      why.reason = reason::kVerificationFailed;
      if (auto ok = give_up({std::exchange(device, ""), "", std::move(why)}, Fallback::Refused); !ok)
        return ok.error();
      continue;
    }
    device = planned->opened.device->id();
    auto right = verify(*planned, anew);
    if (!right) return right.error();
    if (*right) return planned;
  }
}

// What is known to be right is timed, where there is a choice, and what wins is verified in its turn.
Result<PlannedModel> Engine::plan_measured(const ModelFile& source) {
  auto planned = plan_verified(source);
  if (!planned || options_.verify == Verify::Never) return planned;
  auto added = measure_products(planned->plan, measured_, [this](const Device& d, size_t done, size_t total) {
    return emit(event::Progress{event::Progress::Measuring, d.id(), done, total});
  });
  if (!added) return added.error();
  if (!*added) return planned;
  planned = Error{};  // gives its devices back first
  return plan_verified(source);
}

Result<LoadedModelPtr> Engine::load(const ModelFile& source) {
  const auto begin = std::chrono::steady_clock::now();
  bool first = true;
  for (;;) {
    auto planned = plan_measured(source);
    if (!planned) return planned.error();
    const ModelPlan& b = planned->plan;
    if (first && b.options.context > b.config.context)
      emit(event::LongContext{b.options.context, b.config.context});
    first = false;
    const std::vector<std::string> devices = replaceable(b);
    auto loaded = load_once(std::move(*planned));
    if (loaded) {
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      (*loaded)->load_seconds = taken.count();
      return loaded;
    }
    if (loaded.error().reason == std::string_view(reason::kPackedUnusable)) {
      damaged_.push_back(loaded.error());
      continue;
    }
    // The plan fitted, the driver disagreed; or what it computes is wrong: the next device may do better.
    if (devices.empty() || options_.strict || !is_of_the_device(loaded.error().code)) return loaded.error();
    for (const std::string& id : devices)
      if (auto ok = give_up({id, "", loaded.error()}, Fallback::Refused); !ok) return ok.error();
  }
}

Result<LoadedModelPtr> Engine::load_once(PlannedModel&& p) {
  auto loaded = std::make_shared<LoadedModel>(LoadedModel{
      std::move(p.source), std::move(p.opened), std::move(p.others), std::move(p.fallbacks), nullptr});
  const std::string device = p.plan.device().id();
  for (const Stage& stage : p.plan.stages)
    if (stage.packed && options_.verify != Verify::Never)
      if (auto ok = check_once(*stage.packed, options_.verify == Verify::Always); !ok) return ok.error();
  if (options_.before_taking && fits(p.plan))
    if (auto ok = options_.before_taking(p.plan); !ok) return ok.error();
  auto model = Model::load(std::move(p.plan), [&](uint64_t done, uint64_t total) {
    return emit(event::Progress{event::Progress::Loading, device, done, total});
  });
  if (!model) return model.error();
  loaded->model = std::move(*model);
  if (!loaded->model->plan().takes_states) {
    auto right = first_use_.try_out(*loaded->model, *loaded->source.file, loaded->source.name);
    tell_not_kept();
    if (!right) return right.error();
  }
  loaded->at_start = loaded->model->receipt();
  return loaded;
}

Status Engine::replace(LoadedModelPtr& on, const Error& lost, const MoveTo& move) {
  const std::vector<std::string> devices = replaceable(on->model->plan());
  if (devices.empty()) return lost;
  if (options_.strict) {
    Error refused = lost;
    refused.code = Code::NoBackend, refused.reason = reason::kDeviceLost;
    refused.changes.push_back({"strict", "false", "goes on on the next best device"});
    return refused;
  }
  if (!on->successor) {
    for (const std::string& id : devices)
      unusable_.push_back(
          {id, "", {Code::DeviceLost, "it was lost while computing", "", reason::kDeviceLost}});
    options_.split.clear(), options_.gpu_layers.reset();  // they spoke of the devices that are gone
    auto next = load(on->source);
    if (!next) return next.error();
    on->successor = std::move(*next);
  }
  auto done = move(model_of(on->successor));
  if (!done) return done.error();
  on = on->successor;
  emit(event::Recovered{fmt::to_string(fmt::join(devices, ", ")), on->model->device().id(), *done, lost});
  return Done{};
}

OnDeviceLost Engine::on_device_lost(LoadedModelPtr& on) {
  return [this, &on](const Error& lost, const MoveTo& move) { return replace(on, lost, move); };
}

Status Engine::embed(LoadedModelPtr& on, std::span<const std::vector<int32_t>> texts,
                     const EmbedSettings& settings, const EmbeddingSink& sink) {
  size_t done = 0;
  const EmbeddingSink counted = [&](size_t text, std::span<const float> embedding) {
    auto ok = sink(text, embedding);
    if (ok) done = text + 1;
    return ok;
  };
  for (;;) {
    auto ok = gimbal::embed(*on->model, texts, settings, counted, done);
    if (ok || ok.error().code != Code::DeviceLost) return ok;
    auto moved = replace(on, ok.error(), [&](const ModelPtr&) -> Result<std::string> {
      return format("{} of {} texts", done, texts.size());
    });
    if (!moved) return moved;
  }
}

}  // namespace gimbal
