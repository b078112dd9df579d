// Opens devices: the requested or chosen one, and the host.
#include <fnmatch.h>

#include <algorithm>

#include "base/format.h"
#include "engine/device_chooser.h"
#include "engine/kernel_registry.h"

namespace gimbal {
namespace {

// A misspelt variant is bad usage; a variant that this CPU cannot run is an unavailable device.
Error refused_variant(Registry& registry, const std::string& variant, Error e) {
  e.field = "cpu_variant", e.value = variant;
  DeviceRequest plain;
  plain.backend = kHostBackend, plain.strict = true;
  auto cpu = registry.open(plain);
  if (!cpu) return e;
  bool known = false;
  for (const Variant& v : variants_of(*cpu->device)) {
    known = known || v.name == variant;
    e.limit += (e.limit.empty() ? "" : ", ") + v.name;
  }
  if (known) return e;
  e.code = Code::Usage, e.reason = reason::kOutOfRange;
  e.message = format("there is no CPU variant '{}'", variant), e.remedy = "this build has: " + e.limit;
  return e;
}

// Whether a pattern names any kernel of the device, and one that it can run.
struct Matches {
  bool any = false, usable = false;
};
Matches matches(const Device& d, const std::string& pattern) {
  Matches m;
  const uint32_t features = d.describe().features;
  for (size_t i = 0; i < d.kernel_count() && !m.usable; i++) {
    if (fnmatch(pattern.c_str(), d.kernel(i).name, 0) != 0) continue;
    m.any = true;
    m.usable = !(d.kernel(i).needs & ~features);
  }
  return m;
}

}  // namespace

DeviceRequest DeviceChooser::request() const {
  DeviceRequest r;
  r.backend = options_.backend, r.index = options_.device, r.strict = options_.strict;
  r.allow_software = options_.allow_software_devices, r.refresh = options_.refresh;
  r.order = options_.backend_order;
  r.host_options = host_options(options_);
  return r;
}

Result<OpenedDevice> DeviceChooser::open(const DeviceRequest& r) {
  auto opened = registry_.open(r, record_.unusable);
  if (opened) record_.opened(*opened->device);
  if (opened || !options_.cpu_variant) return opened;
  return refused_variant(registry_, *options_.cpu_variant, opened.error());
}

Result<std::unique_ptr<Device>> DeviceChooser::open_host() {
  DeviceRequest r;
  r.backend = kHostBackend, r.strict = true, r.host_options = host_options(options_);
  auto opened = open(r);
  if (!opened) return opened.error();
  return std::move(opened->device);
}

// Opens the device again, with an option that backends without these kernels refuse.
void DeviceChooser::add_tensors(OpenedDevice& opened) {
  const auto at = DeviceLocation::parse(opened.device->id());
  if (is_host(*opened.device) || !at) return;
  DeviceRequest r = request();
  r.backend = at->backend, r.index = at->index, r.strict = true, r.options = "tensors=1\n";
  if (auto with = registry_.open(r, record_.unusable)) opened.device = std::move(with->device);
}

Result<OpenedDevice> DeviceChooser::open_device() {
  auto opened = open(request());
  if (!opened) return opened;
  if (options_.tensors) add_tensors(*opened);
  for (const Rejection& r : opened->fallbacks) {
    if (!record_.is_news(r.sentence() + opened->device->id())) continue;
    record_.emit(Fallback{Fallback::Device, r.what, opened->device->id(), r.error()});
  }
  if (auto ok = check_settings(*opened); !ok) return ok.error();
  return opened;
}

bool DeviceChooser::has_gpu_backend() {
  for (const std::string& name : registry_.backends().names())
    if (name != kHostBackend && registry_.backends().source(name).present) return true;
  return false;
}

// Never silently ignores a setting that this device cannot fulfil.
Status DeviceChooser::check_settings(const OpenedDevice& opened) {
  const Device& d = *opened.device;
  const std::string id = d.id();
  std::vector<event::Unfulfilled> all;
  if (options_.gpu_layers.value_or(0) > 0 && is_host(d))
    all.push_back({"gpu_layers", format("{}", *options_.gpu_layers),
                   format("{}: all layers run on the CPU",
                          has_gpu_backend() ? "no GPU is used" : "no GPU backend in this build"),
                   false});
  if (options_.cpu_variant && !is_host(d))
    all.push_back({"cpu_variant", *options_.cpu_variant, "has no effect on " + id, false});
  for (const std::string& pattern : options_.run.kernels.patterns) {
    const Matches m = matches(d, pattern);
    if (!m.usable)
      all.push_back(
          {"prefer_kernel", pattern,
           m.any ? format("matches only kernels that {} cannot run", id) : "matches no kernel of " + id,
           false});
  }
  if (options_.allow_software_devices && !has_gpu_backend())
    all.push_back({"allow_software_devices", "true",
                   "has no effect: this build has no backend with software devices", true});
  bool any_fast = false;
  const uint32_t features = d.describe().features;
  for (size_t i = 0; i < d.kernel_count(); i++)
    any_fast = any_fast || (d.kernel(i).numerics == GIMBAL_FAST && !(d.kernel(i).needs & ~features));
  if (options_.run.kernels.allow_fast && !any_fast)
    all.push_back({"numerics", "fast", format("has no effect: every kernel of {} is exact", id), true});

  for (const event::Unfulfilled& u : all)
    if (options_.strict && !u.permission)
      return Error{Code::NoBackend,
                   format("'{}' {}: {}", u.field, u.value, u.message),
                   "",
                   "",
                   u.field,
                   u.value,
                   "",
                   {{"strict", "false", ""}, {u.field, "", ""}}};
  if (!record_.is_news(id)) return Done{};
  for (const event::Unfulfilled& u : all)
    if (!u.permission) record_.emit(u);
  record_.emit(event::Chosen{opened, options_.backend == "auto"});
  for (const event::Unfulfilled& u : all)
    if (u.permission) record_.emit(u);
  return Done{};
}

}  // namespace gimbal
