#include "apps/reports/backends_json.h"

#include "base/json.h"
#include "discovery/summary.h"
#include "engine/kernel_registry.h"

namespace gimbal {

Json text_or_null(const std::string& s) { return s.empty() ? Json() : Json(s); }

namespace {

Json device_json(const DeviceReport& d) {
  return {{"id", d.id},
          {"index", d.index},
          {"name", d.name},
          {"memory_total", d.memory_total ? Json(d.memory_total) : Json()},
          {"memory_free", d.memory_free ? Json(*d.memory_free) : Json()},
          {"compute_capability", text_or_null(d.compute_capability)},
          {"driver", text_or_null(d.driver)},
          {"pci_id", text_or_null(d.pci_id)},
          {"same_card_as", text_or_null(d.duplicate_of)},
          {"features", d.features},
          {"threads", d.threads},
          {"software", d.software},
          {"unified_memory", d.unified_memory},
          {"kernels", d.kernels}};
}

Json backend_json(const BackendReport& r) {
  Json devices = Json::array(), refused = Json::array();
  for (const DeviceReport& d : r.devices) devices.push_back(device_json(d));
  for (const DeviceRefusal& d : r.refused)
    refused.push_back({{"index", d.index}, {"code", d.reason}, {"reason", d.message}, {"remedy", d.remedy}});
  return {{"backend", r.backend},
          {"name", display_name(r.backend)},
          {"present", r.present},
          {"available", r.available},
          {"code", r.reason},
          {"reason", r.message},
          {"remedy", r.remedy},
          {"plugin", text_or_null(r.library)},
          {"tested_hardware", text_or_null(tested_hardware(r.backend).value_or(""))},
          {"devices", std::move(devices)},
          {"refused", std::move(refused)}};
}

}  // namespace

Json backends_json(const std::vector<BackendReport>& reports, const Result<DeviceChoice>& best,
                   const std::vector<Variant>& variants, double seconds) {
  Json list = Json::array(), rejected = Json::array(), sets = Json::array();
  for (const BackendReport& r : reports) list.push_back(backend_json(r));
  Json choice;
  if (best) {
    for (const Rejection& r : best->rejected)
      rejected.push_back({{"what", r.what}, {"code", r.reason}, {"reason", r.message}, {"remedy", r.remedy}});
    for (const Variant& v : variants)
      sets.push_back({{"name", v.name}, {"available", v.missing.empty()}, {"missing", v.missing}});
    choice = {{"device", best->id()},
              {"backend", best->backend},
              {"reason", best->why},
              {"rejected", std::move(rejected)},
              {"variants", std::move(sets)}};
  }
  return {{"backends", std::move(list)},
          {"automatic", std::move(choice)},
          {"kernels", registry_json(kernel_registry(reports))},
          {"seconds", seconds}};
}

}  // namespace gimbal
