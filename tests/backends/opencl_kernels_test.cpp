// Every kernel of the GPU backends on OpenCL devices, against the double-precision reference.
#define TESTED_BACKEND "opencl"
#include <gtest/gtest.h>

#include <cstdio>

#include "backends/simt/device_main.h"
#include "device/registry.h"
#include "program/conformance.h"

namespace gimbal {
namespace {

class OpenclKernels : public testing::TestWithParam<const char*> {};

TEST_P(OpenclKernels, AgreeWithTheReference) {
  auto opened = open_device({"opencl", 0, true, GetParam()});
  ASSERT_TRUE(opened) << opened.error().message;
  Device& device = *opened->device;
  int cases = 0;
  for (size_t k = 0; k < device.kernel_count(); k++) {
    const char* name = device.kernel(k).name;
    if (getenv("ONLY") && !strstr(name, getenv("ONLY"))) continue;
    auto report = check_kernel(device, k);
    ASSERT_TRUE(report) << name << ": " << report.error().message;
    EXPECT_GT(report->cases, 0) << name << ": " << report->not_run;
    cases += report->cases;
    if (getenv("OTRACE")) fprintf(stderr, "%s %d\n", name, report->cases);
    for (const std::string& f : report->failures) ADD_FAILURE() << name << " " << f;
  }
  std::printf("%zu rows, %d cases\n", device.kernel_count(), cases);
  EXPECT_GE(device.kernel_count(), 97u);
}

INSTANTIATE_TEST_SUITE_P(Pocl, OpenclKernels, testing::Values("", "part=5000"),
                         [](auto& p) { return std::string(p.index == 0 ? "Whole" : "InParts"); });

}  // namespace
}  // namespace gimbal
