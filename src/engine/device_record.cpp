#include "engine/device_record.h"

#include <algorithm>

#include "base/format.h"
#include "device/reason.h"
#include "engine/measured.h"

namespace gimbal {

bool DeviceRecord::is_news(const std::string& sentence) {
  if (std::find(told_.begin(), told_.end(), sentence) != told_.end()) return false;
  told_.push_back(sentence);
  return true;
}

void DeviceRecord::emit_once(const Fallback& f) {
  if (is_news(f.what + f.why.message)) emit(f);
}

void DeviceRecord::opened(const Device& d) {
  const std::string id = d.id();
  if (std::find(looked_up_.begin(), looked_up_.end(), id) != looked_up_.end()) return;
  looked_up_.push_back(id);
  for (MeasuredProduct& m : kept_measurements(d)) measured.push_back(std::move(m));
}

Status DeviceRecord::give_up(Unusable what, Fallback::Kind kind) {
  Fallback f{kind, kind == Fallback::Kernel ? what.kernel : what.device, "", what.why};
  if (options_.strict) {
    Error refused = std::move(f.why);
    refused.code = Code::NoBackend;
    refused.message = format("{} is not used: {}", f.what, refused.message);
    refused.changes.push_back({"strict", "false", "uses the next best"});
    return refused;
  }
  emit(f);
  fallbacks.push_back(std::move(f));
  unusable.push_back(std::move(what));
  return Done{};
}

void DeviceRecord::lost(const std::string& device) {
  unusable.push_back(
      {device, "", {Code::DeviceLost, "it was lost while computing", "", reason::kDeviceLost}});
}

void DeviceRecord::forget(const std::string& backend) {
  // Its devices are "metal:0".
  const auto of_backend = [&](const std::string& what) { return what.starts_with(backend + ":"); };
  for (const Unusable& u : unusable)
    if (of_backend(u.device))
      std::erase_if(fallbacks, [&](const Fallback& f) { return f.what == u.device || f.what == u.kernel; });
  std::erase_if(unusable, [&](const Unusable& u) { return of_backend(u.device); });
  std::erase_if(measured, [&](const MeasuredProduct& m) { return of_backend(m.device); });
  std::erase_if(looked_up_, of_backend);
}

bool DeviceRecord::is_unusable(const std::string& device, const std::string& kernel) const {
  return std::any_of(unusable.begin(), unusable.end(),
                     [&](const Unusable& u) { return u.device == device && u.kernel == kernel; });
}

bool DeviceRecord::lost_kernels(const std::string& device) const {
  return std::any_of(unusable.begin(), unusable.end(),
                     [&](const Unusable& u) { return u.device == device && !u.kernel.empty(); });
}

RunOptions DeviceRecord::run_options() const {
  RunOptions run = options_.run;
  run.kernels.measured = measured;
  for (const Unusable& u : unusable)
    if (!u.kernel.empty()) run.kernels.quarantined.push_back({u.kernel, u.why.message, u.device});
  return run;
}

std::string host_options(const EngineOptions& o) {
  std::string all;
  if (o.threads) all += format("threads={}\n", *o.threads);
  if (o.cpu_variant) all += format("variant={}\n", *o.cpu_variant);
  if (o.limit_megabytes) all += format("limit_megabytes={}\n", *o.limit_megabytes);
  return all;
}

}  // namespace gimbal
