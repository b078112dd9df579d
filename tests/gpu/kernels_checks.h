// Every kernel of a GPU backend against the double-precision reference, on any device.
#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "conformance/conformance.h"
#include "discovery/registry.h"

namespace gimbal::test {

inline void check_kernels(const std::string& backend, const std::string& options) {
  auto opened = open_device({backend, 0, true, options});
  ASSERT_TRUE(opened) << opened.error().message;
  const Device& device = *opened->device;
  int cases = 0;
  KernelChecks checks;
  for (size_t k : by_cases(device)) {
    const char* name = device.kernel(k).name;
    auto report = checks.check(device, k);
    ASSERT_TRUE(report) << name << ": " << report.error().message;
    EXPECT_GT(report->cases, 0) << name << ": " << report->not_run;
    cases += report->cases;
    for (const std::string& f : report->failures) ADD_FAILURE() << name << " " << f;
  }
  std::printf("%zu rows, %d cases\n", device.kernel_count(), cases);
  EXPECT_GE(device.kernel_count(), 100u);
}

}  // namespace gimbal::test
