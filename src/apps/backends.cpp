// gimbal backends (doctor): every backend there is, usable or not, with the reason and what would help; and
// which device would be used. Nothing but the CPU is opened in this process: a broken driver cannot spoil the
// report about it.
#include <chrono>

#include "apps/command.h"
#include "apps/json.h"
#include "apps/options.h"
#include "apps/terminal.h"
#include "discovery/registry.h"
#include "discovery/summary.h"
#include "engine/kernel_names.h"

namespace gimbal {
namespace {

Json text_or_null(const std::string& s) { return s.empty() ? Json() : Json(s); }

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
    refused.push_back({{"index", d.index}, {"code", d.code}, {"reason", d.reason}, {"remedy", d.remedy}});
  return {{"backend", r.backend},
          {"name", display_name(r.backend)},
          {"present", r.present},
          {"available", r.available},
          {"code", r.code},
          {"reason", r.reason},
          {"remedy", r.remedy},
          {"plugin", text_or_null(r.library)},
          {"devices", std::move(devices)},
          {"refused", std::move(refused)}};
}

class BackendsCommand final : public Command {
 public:
  void declare(Arguments& a) override { declare_choice(a, request_.allow_software, order_); }

  Result<int> run() override {
    auto order = backend_order(order_);
    if (!order) return order.error();
    request_.order = *order;
    const auto begin = std::chrono::steady_clock::now();
    const auto reports = discover_backends();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    const auto best = choose_device(reports, request_);
    std::vector<Variant> variants;
    if (auto cpu = gimbal::open_device({"cpu", 0, true})) variants = variants_of(*cpu->device);
    if (json) print_as_json(reports, best, variants, taken.count());
    else print_for_people(reports, best, variants);
    return best ? kDone : kNoBackend;
  }

 private:
  void print_as_json(const std::vector<BackendReport>& reports, const Result<DeviceChoice>& best,
                     const std::vector<Variant>& variants, double seconds) const {
    Json list = Json::array(), rejected = Json::array(), sets = Json::array();
    for (const BackendReport& r : reports) list.push_back(backend_json(r));
    Json choice;
    if (best) {
      for (const Rejection& r : best->rejected)
        rejected.push_back({{"what", r.what}, {"code", r.code}, {"reason", r.reason}, {"remedy", r.remedy}});
      for (const Variant& v : variants)
        sets.push_back({{"name", v.name}, {"available", v.missing.empty()}, {"missing", v.missing}});
      choice = {{"device", best->id()},
                {"backend", best->backend},
                {"reason", best->reason},
                {"rejected", std::move(rejected)},
                {"variants", std::move(sets)}};
    }
    print_json({{"backends", std::move(list)}, {"automatic", std::move(choice)}, {"seconds", seconds}});
  }

  void print_for_people(const std::vector<BackendReport>& reports, const Result<DeviceChoice>& best,
                        const std::vector<Variant>& variants) const {
    print(printable(backend_summary(reports, best), true));
    if (best) print(format("  why: {}\n", best->reason));
    std::string line;
    for (const Variant& v : variants)
      line += (line.empty() ? "" : ", ") + v.name +
              (v.missing.empty() ? "" : format(" (no: needs {})", v.missing));
    if (!line.empty()) print(format("  instruction sets of the CPU's kernels: {}\n", line));
  }

  SelectionRequest request_;
  std::optional<std::string> order_;
};

}  // namespace

std::unique_ptr<Command> make_backends() { return std::make_unique<BackendsCommand>(); }

}  // namespace gimbal
