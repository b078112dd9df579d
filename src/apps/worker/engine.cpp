#include "apps/worker/engine.h"

#include <algorithm>

#include "base/clock.h"
#include "base/format.h"

namespace gimbal::worker {
namespace {

// "0: NVIDIA H200, 1: NVIDIA L4"
std::string devices_of(const gimbal_backend& table, int count) {
  std::string all;
  for (int i = 0; i < count; i++) {
    auto device = Device::open(table, i);
    const char* name = device ? (*device)->describe().name : nullptr;
    all += format("{}{}: {}", i ? ", " : "", i, name ? name : "does not open");
  }
  return all;
}

Result<std::unique_ptr<Device>> open_device(const gimbal_backend& table, int index,
                                            const std::string& options) {
  // With none at all, opening tells why.
  const int count = table.device_count();
  if (count > 0 && (index < 0 || index >= count))
    return Error{Code::NoBackend,
                 format("there is no {} device {}: found {} ({})", table.name, index,
                        count == 1 ? "one" : format("{}", count), devices_of(table, count)),
                 "give the number of one of these"};
  auto device = Device::open(table, index, options);
  if (device) return device;
  Error e = device.error();
  if (e.remedy.empty())
    e.remedy = format(
        "this program holds the {} backend alone and computes nowhere else; the program `gimbal` "
        "looks for other devices",
        table.name);
  return e;
}

// Without the kernels that give wrong numbers here: each attempt may find more that must be left out.
Result<ModelPlan> plan_verified(const Loaded& on, const Settings& settings, FirstUse& first_use) {
  RunOptions run = settings.run;
  std::vector<Quarantined>& left_out = run.kernels.quarantined;
  for (bool anew = settings.verify == Verify::Always;; anew = false) {
    auto plan = make_model_plan(*on.file, *on.device, run);
    if (plan) plan = with_larger_cache(std::move(*plan), settings.cache);
    if (!plan || settings.verify == Verify::Never) return plan;
    auto wrong = first_use.wrong_kernels(plan->last(), anew);
    if (!wrong) return wrong.error();
    const size_t before = left_out.size();
    for (const Quarantined& q : *wrong) {
      if (std::any_of(left_out.begin(), left_out.end(),
                      [&](const Quarantined& known) { return known.kernel == q.kernel; }))
        continue;
      if (settings.wrong_kernel) settings.wrong_kernel(q);
      left_out.push_back(q);
    }
    if (left_out.size() == before) return plan;
  }
}

}  // namespace

Result<Loaded> load_on(const gimbal_backend& table, const Source& from, int index, const Settings& settings) {
  const double begin = now();
  Loaded out;
  out.file = from.file;
  if (!out.file) {
    auto file = Gguf::open(from.path);
    if (!file) return file.error();
    out.file = std::make_shared<const Gguf>(std::move(*file));
  }
  auto tokenizer = Tokenizer::create(*out.file);
  if (!tokenizer) return tokenizer.error();
  out.tokenizer = std::move(*tokenizer);
  auto device = open_device(table, index, settings.device_options);
  if (!device) return device.error();
  out.device = std::move(*device);
  FirstUse first_use(settings.verify, settings.verifying);
  auto plan = plan_verified(out, settings, first_use);
  if (!plan) return plan.error();
  auto model = Model::load(std::move(*plan), settings.progress);
  if (!model) return model.error();
  out.model = std::move(*model);
  if (auto right = first_use.try_out(*out.model, *out.file, from.path); !right) return right.error();
  out.seconds = now() - begin;
  return out;
}

}  // namespace gimbal::worker
