// Probes a backend's devices in the current process.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "device/contract.h"
#include "device/device.h"
#include "device/loader_lock.h"
#include "device/reason.h"
#include "discovery/depends.h"
#include "discovery/probe.h"
#include "discovery/report.h"

namespace gimbal {
namespace {

// The reason for the lack of devices: a backend reports it when one is opened.
Error why_none(const LibraryPtr& library, const std::string& options) {
  if (Device::open(library, 0, options)) return {Code::NoBackend, "it has none", "", reason::kNoDevice};
  return backend_error(library->table().last_error(nullptr), reason::kNoDevice);
}

Error trial_failed(Error e) {
  e.reason = e.code == Code::OutOfMemory  ? reason::kNotEnoughMemory
             : e.code == Code::DeviceLost ? reason::kDeviceLost
                                          : reason::kOpenFailed;
  e.message = format("it opens, and the trial of its queue failed: {}", e.message);
  if (e.remedy.empty()) e.remedy = "see the system's log, and update or reinstall the driver";
  return e;
}

// Many drivers open a device that cannot work: one that was lost, or whose memory does not answer.
Status try_queue(const Device& device) {
  std::array<uint8_t, 256> sent, returned{};
  for (size_t i = 0; i < sent.size(); i++) sent[i] = uint8_t(167 * i + 13);
  auto there = device.allocate(sent.size());
  if (!there) return trial_failed(there.error());
  if (auto ok = device.write(*there, 0, sent.data(), sent.size()); !ok) return trial_failed(ok.error());
  if (auto ok = device.wait(); !ok) return trial_failed(ok.error());
  if (auto ok = device.read(*there, 0, returned.data(), returned.size()); !ok)
    return trial_failed(ok.error());
  const auto [was, is] = std::mismatch(sent.begin(), sent.end(), returned.begin());
  if (was == sent.end()) return Done{};
  Error wrong = trial_failed({Code::Failed,
                              format("device {}: byte {} of {} came back as {}; expected {}", device.id(),
                                     was - sent.begin(), sent.size(), *is, *was),
                              ""});
  wrong.reason = reason::kVerificationFailed;
  return wrong;
}

// Whether a library is mapped now that was not there `before`. A plugin does not count: it is opened from a
// copy in memory.
bool has_come(const std::vector<std::string>& before) {
  const auto now = mapped_libraries();
  return std::ranges::any_of(
      now, [&](const std::string& file) { return std::ranges::find(before, file) == before.end(); });
}

Result<std::unique_ptr<Device>> open_and_try(const LibraryPtr& library, int index, const std::string& options,
                                             const std::vector<std::string>* before) {
  auto device = Device::open(library, index, options);
  if (device && before && has_come(*before))
    if (auto works = try_queue(**device); !works) return works.error();
  return device;
}

}  // namespace

BackendReport examine(const LibraryPtr& library, const std::string& options, std::vector<std::string>* loaded,
                      const std::vector<std::string>* before) {
  BackendReport r;
  r.backend = library->name(), r.library = library->path(), r.present = true;
  int count = [&] {
    const LoaderLock loading;
    return library->table().device_count();
  }();
  if (count == 0 && ("\n" + options).find("\nlibrary=") != std::string::npos) count = 1;
  if (count < 0) {
    r.reason = reason::kBrokenPlugin,
    r.message = format("the {} backend reports {} devices", r.backend, count);
    return r;
  }
  if (count == 0) {
    const Error why = why_none(library, options);
    r.reason = why.reason, r.message = format("no device found: {}", why.message), r.remedy = why.remedy;
    return r;
  }
  for (int i = 0; i < std::min(count, int(kMaxProbedDevices)); i++) {
    if (auto d = open_and_try(library, i, options, before)) {
      r.devices.push_back(report_of(**d, i));
      if (loaded)
        for (std::string& file : mapped_libraries()) loaded->push_back(std::move(file));
    } else
      r.refused.push_back({i, *d.error().reason ? d.error().reason : reason::kOpenFailed, d.error().message,
                           d.error().remedy});
  }
  r.available = !r.devices.empty();
  if (!r.available)
    r.reason = r.refused[0].reason, r.message = r.refused[0].message, r.remedy = r.refused[0].remedy;
  return r;
}

}  // namespace gimbal
