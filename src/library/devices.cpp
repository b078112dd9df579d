// Devices and kernels, and where a model of some size goes.
#include <fnmatch.h>

#include "library/internal.h"

namespace gimbal::v1 {
namespace {

SelectionRequest selection(const Options& o, uint64_t bytes) {
  return {o.backend, o.device, o.strict, o.allow_software_devices, bytes, o.backend_order, {}};
}

Device as_public(const DeviceReport& d, const BackendReport& r) {
  return {d.id,
          r.backend,
          d.name,
          d.driver,
          d.memory_total,
          d.memory_free.value_or(0),
          d.compute_capability,
          d.unified_memory,
          d.software};
}

std::optional<Device> device_of(const std::vector<BackendReport>& reports, const std::string& id) {
  for (const BackendReport& r : reports)
    for (const DeviceReport& d : r.devices)
      if (d.id == id) return as_public(d, r);
  return {};
}

// A part of a model: some layers, and one of its two tables.
ModelDimensions part_of(ModelDimensions d, int layers) {
  d.layers = layers, d.tied_output = true;
  return d;
}

// The last layers that a device takes beside the output head.
int layers_that_fit(const ModelDimensions& d, uint64_t free) {
  int most = d.layers;
  while (most > 0 && estimate_inference_memory(part_of(d, most)).total() > free) most--;
  return most;
}

}  // namespace

std::vector<Backend> Engine::backends() {
  std::vector<Backend> all;
  for (const BackendReport& r : impl_->registry.discover()) {
    Backend b{r.backend, r.available, {}, {}};
    if (!r.available) {
      b.why_not.code = Code::NoBackend;
      b.why_not.message = r.message, b.why_not.remedy = r.remedy, b.why_not.reason = r.reason;
    }
    for (const DeviceReport& d : r.devices) b.devices.push_back(as_public(d, r));
    all.push_back(std::move(b));
  }
  return all;
}

Result<Device> Engine::best_device(uint64_t bytes) {
  const auto reports = impl_->registry.discover();
  auto best = choose_device(reports, selection(impl_->options, bytes));
  if (!best) return to_public(best.error());
  if (auto device = device_of(reports, best->id())) return *device;
  return Error{Code::NoBackend, best->id() + " is gone", "", reason::kNoDevice, "", "", "", {}};
}

Result<std::vector<Placement>> Engine::best_placement(const ModelShape& shape) {
  auto d = dimensions_of(shape);
  if (!d) return d.error();
  const auto reports = impl_->registry.discover();
  const uint64_t bytes = estimate_inference_memory(*d).total();
  auto whole = choose_device(reports, selection(impl_->options, bytes));
  if (whole && whole->backend != "cpu")
    return std::vector<Placement>{{whole->id(), 0, d->layers, true, true, whole->why}};
  // No GPU takes all of it. One that takes some layers is still faster than the CPU alone.
  const auto best = choose_device(reports, selection(impl_->options, 0));
  const auto gpu = best ? device_of(reports, best->id()) : std::nullopt, cpu = device_of(reports, "cpu:0");
  if (gpu && cpu && gpu->backend != "cpu" && !impl_->options.strict) {
    const int there = layers_that_fit(*d, gpu->memory_free), here = d->layers - there;
    if (there > 0 && estimate_inference_memory(part_of(*d, here)).total() <= cpu->memory_free)
      return std::vector<Placement>{
          {cpu->id, 0, here, true, false, gpu->id + " has no memory for more"},
          {gpu->id, here, there, false, true,
           gimbal::format("{} of {} layers fit into its {} of free memory; {}", there, d->layers,
                          human_bytes(gpu->memory_free), best->why)}};
  }
  if (!whole) return to_public(whole.error());
  return std::vector<Placement>{{whole->id(), 0, d->layers, true, true, whole->why}};
}

std::string Engine::summary() {
  const auto reports = impl_->registry.discover();
  return backend_summary(reports, choose_device(reports, selection(impl_->options, 0)));
}

std::vector<Kernel> Engine::kernels() {
  const auto names = [](DTypeSet set) {
    std::vector<std::string> all;
    for (DType t : kAllDTypes)
      if (has(set, t)) all.push_back(info(t).name);
    return all;
  };
  std::vector<Kernel> all;
  for (ListedKernel& k : list_kernels(impl_->registry).kernels)
    all.push_back({std::move(k.name), std::move(k.device), std::move(k.variant), info(OpKind(k.op)).name,
                   k.rank, k.exact, names(k.first), names(k.second), names(k.output), std::move(k.limits),
                   std::move(k.needs), std::move(k.missing)});
  return all;
}

KernelCapabilities Engine::kernel_capabilities() { return kernel_registry(impl_->registry.discover()); }

Result<bool> Engine::is_capable_of(const std::string& name) {
  if (const auto known = kernel_capabilities().is_capable_of(name)) return *known;
  bool found = false;
  for (const Kernel& k : kernels())
    if (fnmatch(name.c_str(), k.name.c_str(), 0) == 0) {
      if (k.missing.empty()) return true;
      found = true;
    }
  if (found) return false;
  return Error{Code::Usage,
               gimbal::format("there is no kernel {}", gimbal::quoted(name)),
               "kernel_capabilities() and kernels() list all names",
               "",
               "",
               name,
               "",
               {}};
}

}  // namespace gimbal::v1
