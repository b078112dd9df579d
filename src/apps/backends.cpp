// gimbal backends (doctor): every backend there is, usable or not, with the reason and what would help.
#include <map>

#include "apps/command.h"
#include "apps/json.h"
#include "apps/kernel_names.h"
#include "apps/options.h"
#include "apps/terminal.h"

namespace gimbal {
namespace {

class Backends final : public Command {
 public:
  void declare(Arguments&) override {}

  Result<int> run() override {
    const auto reports = discover_backends();
    auto automatic = gimbal::open_device(DeviceRequest{});
    std::vector<Variant> variants;
    if (automatic) variants = variants_of(*automatic->device);
    if (json) print_as_json(reports, automatic, variants);
    else print_for_people(reports, automatic, variants);
    return automatic ? kDone : kNoBackend;
  }

 private:
  void print_as_json(const std::vector<BackendReport>& reports, const Result<OpenedDevice>& automatic,
                     const std::vector<Variant>& variants) const {
    Json list = Json::array();
    for (const BackendReport& r : reports) {
      Json devices = Json::array();
      for (const DeviceReport& d : r.devices)
        devices.push_back({{"id", d.id},
                           {"name", d.name},
                           {"memory_total", d.info.memory_total},
                           {"memory_free", d.info.memory_free},
                           {"features", d.features},
                           {"threads", d.info.threads},
                           {"software", bool(d.info.software)},
                           {"unified_memory", bool(d.info.unified_memory)},
                           {"kernels", d.kernels}});
      list.push_back({{"backend", r.backend},
                      {"available", r.available},
                      {"code", r.code},
                      {"reason", r.reason},
                      {"remedy", r.remedy},
                      {"devices", std::move(devices)}});
    }
    Json choice;
    if (automatic) {
      choice = {{"device", automatic->device->id()}, {"reason", automatic->reason}};
      choice["variants"] = Json::array();
      for (const Variant& v : variants)
        choice["variants"].push_back(
            {{"name", v.name}, {"available", v.missing.empty()}, {"missing", v.missing}});
    }
    print_json({{"backends", std::move(list)}, {"automatic", std::move(choice)}});
  }

  void print_for_people(const std::vector<BackendReport>& reports, const Result<OpenedDevice>& automatic,
                        const std::vector<Variant>& variants) const {
    for (const BackendReport& r : reports) {
      print(format("{} {:<8} ", r.available ? "\u2713" : "\u2717", r.backend));
      if (!r.available) {
        print(format("{} ({})\n", r.reason, r.code));
        if (!r.remedy.empty()) print(dim(format("           {}", r.remedy)) + "\n");
        continue;
      }
      const char* indent = "";
      for (const DeviceReport& d : r.devices) {
        print(format("{}{}  {}{}\n", indent, bold(d.id), printable(d.name),
                     d.info.software ? "  (emulated on the CPU)" : ""));
        print(format("           memory: {} free of {}\n", human_bytes(d.info.memory_free),
                     human_bytes(d.info.memory_total)));
        print(format("           features: {}\n", d.features.empty() ? "none" : d.features));
        if (d.info.threads) print(format("           threads: {}\n", d.info.threads));
        print(format("           kernels: {}\n", d.kernels));
        indent = "           ";
      }
    }
    if (!automatic) return;
    print(format("\nautomatic choice: {}, because: {}\n", bold(automatic->device->id()), automatic->reason));
    std::string line;
    for (const Variant& v : variants)
      line += (line.empty() ? "" : ", ") + v.name +
              (v.missing.empty() ? "" : format(" (no: needs {})", v.missing));
    if (!line.empty()) print(format("instruction sets of its kernels: {}\n", line));
  }
};

}  // namespace

std::unique_ptr<Command> make_backends() { return std::make_unique<Backends>(); }

}  // namespace gimbal
