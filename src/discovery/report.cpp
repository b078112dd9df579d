#include "discovery/report.h"

#include <algorithm>
#include <map>

#include "base/format.h"

namespace gimbal {

std::string display_name(const std::string& backend) {
#define GIMBAL_KNOWN_BACKEND(id, name, shown) \
  if (backend == name) return shown;
#include "device/backends.def"
#undef GIMBAL_KNOWN_BACKEND
  return backend;
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
