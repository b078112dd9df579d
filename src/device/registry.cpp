#include "device/registry.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"

namespace gimbal {
namespace {

const gimbal_backend* linked(const std::string& name) {
  for (LinkedBackends e = linked_backends(); *e; ++e)
    if (name == (*e)()->name) return (*e)();
  return nullptr;
}

// Why a backend has no device: it says so when one is opened. The second line is the remedy.
Error why_none(const gimbal_backend& b) {
  if (Device::open(b, 0)) return {Code::NoBackend, "it has none", ""};
  const char* said = b.last_error(nullptr);
  const std::string why = said && *said ? said : "no reason given";
  const size_t end = why.find('\n');
  return {Code::NoBackend, why.substr(0, end), end == std::string::npos ? "" : why.substr(end + 1)};
}

// Options may name a driver's library that is not found by itself: then opening decides.
int devices_with(const gimbal_backend& b, const std::string& options) {
  const int count = b.device_count();
  return count == 0 && ("\n" + options).find("\nlibrary=") != std::string::npos ? 1 : count;
}

std::string in_full(const Error& e) {
  return e.remedy.empty() ? e.message : format("{} ({})", e.message, e.remedy);
}

BackendReport examine(const std::string& name) {
  BackendReport r;
  r.backend = name;
  const gimbal_backend* b = linked(name);
  if (!b) {
    r.code = "not-built";
    r.reason = format("this program was built without the {} backend", name);
    r.remedy = "use a build that contains it; this version of gimbal has: " + [] {
      std::string all;
      for (LinkedBackends e = linked_backends(); *e; ++e)
        all += (all.empty() ? "" : ", ") + std::string((*e)()->name);
      return all;
    }();
    return r;
  }
  int count = b->device_count();
  if (count == 0) {
    r.code = "no-device";
    const Error why = why_none(*b);
    r.reason = format("the {} backend found no device: {}", name, why.message), r.remedy = why.remedy;
  }
  for (int i = 0; i < count; i++) {
    auto d = Device::open(*b, i);
    if (!d) {
      r.code = "open-failed", r.reason = d.error().message;
      continue;
    }
    DeviceReport report;
    report.index = i, report.id = (*d)->id(), report.features = (*d)->features(),
    report.kernels = (*d)->kernel_count();
    report.info = (*d)->describe();
    report.name = report.info.name ? report.info.name : "";
    report.info.name = nullptr, report.info.feature_names = nullptr;
    r.devices.push_back(std::move(report));
  }
  r.available = !r.devices.empty();
  if (r.available) r.code.clear(), r.reason.clear();
  return r;
}

std::string known_names() {
  std::string all = "auto";
  for (const std::string& name : backend_names()) all += ", " + name;
  return all;
}

}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> all(std::begin(kBackendOrder), std::end(kBackendOrder));
  for (LinkedBackends e = linked_backends(); *e; ++e)
    if (const std::string name = (*e)()->name; std::find(all.begin(), all.end(), name) == all.end())
      all.push_back(name);
  return all;
}

std::vector<BackendReport> discover_backends() {
  std::vector<BackendReport> all;
  for (const std::string& name : backend_names()) all.push_back(examine(name));
  return all;
}

Result<OpenedDevice> open_device(const DeviceRequest& request) {
  const bool automatic = request.backend == "auto";
  const std::vector<std::string> names = backend_names();
  if (!automatic && std::find(names.begin(), names.end(), request.backend) == names.end())
    return Error{Code::Usage, format("unknown backend '{}'", request.backend),
                 "choose one of: " + known_names()};

  OpenedDevice out;
  std::vector<std::string> wanted;
  if (!automatic) wanted.push_back(request.backend);
  for (const char* name : kBackendOrder)
    if (automatic || (!request.strict && request.backend != name)) wanted.push_back(name);

  std::string refused;
  for (const std::string& name : wanted) {
    const gimbal_backend* b = linked(name);
    std::string why;
    if (!b) {
      why = format("{}: not built into this program", name);
    } else if (int count = devices_with(*b, name == request.backend ? request.options : ""); count == 0) {
      why = format("{}: no device found: {}", name, in_full(why_none(*b)));
    } else {
      const bool asked_for = name == request.backend;
      // A device number belongs to the backend that was asked for; a fallback takes the first device.
      const int index = automatic || asked_for ? request.index : 0;
      if (index < 0 || index >= count)
        return Error{
            Code::NoBackend,
            format("backend '{}' has no device {}; it has {} (0 to {})", name, index, count, count - 1),
            "`gimbal backends` lists them"};
      // Options are words for one backend; another one would not know them.
      auto d = Device::open(*b, index, automatic || asked_for || name == "cpu" ? request.options : "");
      // What emulates a GPU on the CPU is slower than the CPU itself.
      if (d && (*d)->describe().software && !asked_for) {
        why = format("{}: {} is emulated on the CPU, and used only when asked for", name, (*d)->id());
      } else if (d) {
        out.device = std::move(*d);
        out.reason = asked_for   ? "asked for"
                     : automatic ? "first available in the automatic order"
                                 : "the next best in the automatic order";
        if (!refused.empty()) out.reason += " (" + refused + ")";
        return out;
      }
      if (!d && name == "cpu") return d.error();
      if (!d) why = format("{}: {}", name, in_full(d.error()));
    }
    refused += (refused.empty() ? "" : "; ") + why;
    if (name == request.backend) {
      if (request.strict)
        return Error{Code::NoBackend,
                     format("--strict: backend '{}' was asked for and cannot be had: {}", name, why),
                     "leave --strict out to fall back to another device, or see `gimbal backends`"};
      out.fallbacks.push_back(why);
    }
  }
  return Error{Code::NoBackend, "no backend can be used: " + refused, "see `gimbal backends`"};
}

}  // namespace gimbal
