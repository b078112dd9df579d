#include "discovery/summary.h"

#include "base/format.h"

namespace gimbal {
namespace {

std::string gigabytes(uint64_t bytes) { return format("{:.2f} GB", double(bytes) / 1e9); }

}  // namespace

std::string device_line(const DeviceReport& d) {
  std::string out = d.name.empty() ? d.id : d.name;
  out += d.memory_total ? ": " + gigabytes(d.memory_total) : ": memory unknown";
  if (d.memory_free) out += format(" ({} free)", gigabytes(*d.memory_free));
  if (d.unified_memory) out += " (unified memory)";
  if (d.software) out += " (software: emulates a GPU on the CPU)";
  if (!d.compute_capability.empty()) out += ", compute capability " + d.compute_capability;
  if (!d.driver.empty()) out += ", driver " + d.driver;
  if (!d.pci_id.empty()) out += ", PCI " + d.pci_id;
  if (!d.duplicate_of.empty()) out += format(", the same card as {}", d.duplicate_of);
  return out;
}

std::string backend_summary(const std::vector<BackendReport>& reports, const Result<DeviceChoice>& best) {
  std::string out = "=== Available Backends ===\n";
  auto refusal = [&](const std::string& what, const std::string& reason, const std::string& message,
                     const std::string& remedy) {
    out += format("    {}: {} ({})\n", what, message, reason);
    if (!remedy.empty()) out += format("      {}\n", remedy);
  };
  for (const BackendReport& r : reports) {
    out += format("{} {} ({})\n", r.available ? "\u2713" : "\u2717", display_name(r.backend), r.backend);
    for (const DeviceReport& d : r.devices) {
      out += format("    [{}] {}\n", d.index, device_line(d));
      out += format("        {}{} kernels{}\n", d.threads ? format("{} threads, ", d.threads) : "", d.kernels,
                    d.features.empty() ? "" : ", features: " + d.features);
    }
    if (r.available)
      for (const DeviceRefusal& d : r.refused)
        refusal(format("[{}] Error", d.index), d.reason, d.message, d.remedy);
    else refusal("Error", r.reason, r.message, r.remedy);
    if (const auto tested = tested_hardware(r.backend); tested && r.present)
      out += format("    hardware: {}\n", tested->empty() ? "never tested on any" : "tested on " + *tested);
    if (!r.library.empty()) out += format("    plugin: {}\n", r.library);
  }
  if (best) out += format("\nRecommended backend: {} ({})\n", display_name(best->backend), best->id());
  else out += format("\nRecommended backend: none: {}\n", best.error().message);
  return out;
}

}  // namespace gimbal
