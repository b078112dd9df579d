// Every row of every device's kernel table, also those that another row outranks, against the
// double-precision reference. A row that no case reaches is a failure; one that this machine cannot run is
// printed with the reason.
#include "conformance/conformance.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "discovery/registry.h"
#include "support/generic_rows.h"

namespace gimbal {
namespace {

TEST(Kernels, TheBaselineTakesEveryFormatInAnySize) {
  auto cpu = open_device({"cpu", 0, true, "threads=1"});
  ASSERT_TRUE(cpu) << cpu.error().message;
  test::check_generic_rows(*cpu->device, "cpu.baseline");
}

TEST(Kernels, EveryRowAgreesWithTheReference) {
  int rows = 0, ran = 0;
  for (const BackendReport& backend : discover_backends()) {
    if (!backend.available) {
      std::printf("%-8s not run: %s\n", backend.backend.c_str(), backend.message.c_str());
      continue;
    }
    for (const DeviceReport& d : backend.devices) {
      // GPUs have the rows of the tensor library on request, the CPU of this test has them always.
      const bool asks = backend.backend != kHostBackend && backend.backend != "toy";
      auto opened = open_device({backend.backend, d.index, true, asks ? "tensors=1" : ""});
      ASSERT_TRUE(opened) << opened.error().message;
      const Device& device = *opened->device;
      KernelChecks checks;
      rows += int(device.kernel_count());
      for (size_t k : by_cases(device)) {
        auto report = checks.check(device, k);
        ASSERT_TRUE(report) << report.error().message;
        const char* name = device.kernel(k).name;
        if (!report->not_run.empty()) std::printf("%-36s not run: %s\n", name, report->not_run.c_str());
        else
          std::printf("%-36s %3d cases, largest error %.2f of what is allowed\n", name, report->cases,
                      report->worst);
        EXPECT_FALSE(report->unreachable) << name << ": no case reaches this row";
        for (const std::string& f : report->failures) ADD_FAILURE() << name << " " << f;
        ran += report->cases > 0;
      }
    }
  }
  std::printf("%d of %d rows ran\n", ran, rows);
  EXPECT_GT(ran, 0);
}

}  // namespace
}  // namespace gimbal
