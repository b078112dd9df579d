#include "discovery/report.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/format.h"
#include "device/device.h"
#include "discovery/named_kernels.h"

namespace gimbal {

DeviceReport report_of(const Device& d, int index) {
  const auto text = [](const char* t) { return std::string(t ? t : ""); };
  DeviceReport r;
  const gimbal_device_info i = d.describe();
  r.index = index, r.id = d.id(), r.name = text(i.name);
  r.memory_total = i.memory_total;
  if (i.memory_free || !i.memory_total) r.memory_free = i.memory_free;
  r.features = d.features(), r.threads = i.threads, r.kernels = d.kernel_count();
  r.named_kernels = named_kernels_of(d);
  r.driver = text(i.driver), r.compute_capability = text(i.compute_capability);
  for (char c : text(i.pci_id)) r.pci_id += char(std::tolower(static_cast<unsigned char>(c)));
  r.software = i.software, r.unified_memory = i.unified_memory;
  return r;
}

std::string display_name(const std::string& backend) {
#define GIMBAL_KNOWN_BACKEND(id, name, shown, hardware) \
  if (backend == name) return shown;
#include "device/backends.def"
#undef GIMBAL_KNOWN_BACKEND
  return backend;
}

std::optional<std::string> tested_hardware(const std::string& backend) {
#define GIMBAL_KNOWN_BACKEND(id, name, shown, hardware) \
  if (backend == name) return hardware;
#include "device/backends.def"
#undef GIMBAL_KNOWN_BACKEND
  return std::nullopt;
}

std::string in_full(const std::string& message, const std::string& remedy) {
  return remedy.empty() ? message : format("{} ({})", message, remedy);
}

void mark_duplicates(std::vector<BackendReport>& reports, const std::vector<std::string>& order) {
  std::vector<BackendReport*> sorted;
  for (BackendReport& r : reports) sorted.push_back(&r);
  auto place = [&](const BackendReport* r) {
    return std::find(order.begin(), order.end(), r->backend) - order.begin();
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](auto a, auto b) { return place(a) < place(b); });
  std::map<std::string, std::string> first;
  for (BackendReport* r : sorted)
    for (DeviceReport& d : r->devices) {
      d.duplicate_of.clear();
      if (d.pci_id.empty()) continue;
      auto [known, fresh] = first.emplace(d.pci_id, d.id);
      if (!fresh) d.duplicate_of = known->second;
    }
}

}  // namespace gimbal
