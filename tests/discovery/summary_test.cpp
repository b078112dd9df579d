// The summary for people: every fact of a device that is known is in it, and nothing that is not.
#include "discovery/summary.h"

#include <gtest/gtest.h>

namespace gimbal {
namespace {

DeviceReport card() {
  DeviceReport d;
  d.index = 1, d.id = "cuda:1", d.name = "Big Card", d.memory_total = 24'000'000'000, d.kernels = 40;
  return d;
}

BackendReport report(const char* backend, bool there) {
  BackendReport r;
  r.backend = backend, r.present = r.available = there;
  return r;
}

TEST(Summary, ADeviceWithLittleKnown) {
  DeviceReport d;
  d.id = "opencl:0";
  EXPECT_EQ(device_line(d), "opencl:0: memory unknown");
  EXPECT_EQ(device_line(card()), "Big Card: 24.00 GB");
}

TEST(Summary, ADeviceWithEverythingKnown) {
  DeviceReport d = card();
  d.memory_free = 1'500'000'000;
  d.unified_memory = d.software = true;
  d.compute_capability = "9.0", d.driver = "NVIDIA 550", d.pci_id = "0000:3b:00.0",
  d.duplicate_of = "vulkan:0";
  EXPECT_EQ(
      device_line(d),
      "Big Card: 24.00 GB (1.50 GB free) (unified memory) (software: emulates a GPU on the CPU), compute "
      "capability 9.0, driver NVIDIA 550, PCI 0000:3b:00.0, the same card as vulkan:0");
}

TEST(Summary, BackendsThatAreThereThatAreNotAndOneInParts) {
  BackendReport there = report("cuda", true);
  there.devices = {card()};
  there.devices[0].features = "tensor cores";
  there.library = "/lib/gimbal/libgimbal-backend-cuda.so";
  there.refused = {{0, "open-failed", "device 0 does not open", "restart it"},
                   {2, "no-device", "it went away", ""}};
  BackendReport cpu = report("cpu", true);
  cpu.devices = {card()};
  cpu.devices[0].threads = 8;
  BackendReport missing = report("rocm", false);
  missing.reason = "plugin-missing", missing.message = "there is no plugin", missing.remedy = "install it";
  DeviceChoice best;
  best.backend = "cuda", best.index = 1;
  EXPECT_EQ(backend_summary({there, missing, cpu}, best),
            "=== Available Backends ===\n"
            "\u2713 CUDA (cuda)\n"
            "    [1] Big Card: 24.00 GB\n"
            "        40 kernels, features: tensor cores\n"
            "    [0] Error: device 0 does not open (open-failed)\n"
            "      restart it\n"
            "    [2] Error: it went away (no-device)\n"
            "    hardware: tested on NVIDIA H100\n"
            "    plugin: /lib/gimbal/libgimbal-backend-cuda.so\n"
            "\u2717 ROCm (rocm)\n"
            "    Error: there is no plugin (plugin-missing)\n"
            "      install it\n"
            "\u2713 CPU (cpu)\n"
            "    [1] Big Card: 24.00 GB\n"
            "        8 threads, 40 kernels\n"
            "    hardware: tested on Intel Xeon and AMD EPYC (x86-64)\n"
            "\n"
            "Recommended backend: CUDA (cuda:1)\n");
}

TEST(Summary, NothingToRecommend) {
  const std::string text = backend_summary({}, Error{Code::NoBackend, "nothing works here", ""});
  EXPECT_EQ(text, "=== Available Backends ===\n\nRecommended backend: none: nothing works here\n");
}

}  // namespace
}  // namespace gimbal
