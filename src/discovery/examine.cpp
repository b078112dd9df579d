// Probes a backend's devices in the current process.
#include <algorithm>

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

}  // namespace

BackendReport examine(const LibraryPtr& library, const std::string& options,
                      std::vector<std::string>* loaded) {
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
    if (auto d = Device::open(library, i, options)) {
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
