// Every kernel of a GPU backend against the double-precision reference, on any device; and bit by bit against
// the CPU's.
#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "conformance/conformance.h"
#include "discovery/registry.h"
#include "support/generic_rows.h"
#include "support/golden.h"

namespace gimbal::test {

// Digests of the CPU's results, by "mat_mul.q4_0" and the number of cases: rows with other limits run other
// cases.
struct Digest {
  uint64_t bits, without_tiny;  // KernelReport
};
using Digests = std::map<std::pair<std::string, int>, Digest>;
inline std::string op_and_format(const std::string& row) {
  const size_t backend = row.find('.'), variant = row.find('.', backend + 1);
  return row.substr((variant == row.npos ? backend : variant) + 1);
}
inline const Digests& digests_of_the_cpu() {
  static const Digests all = [] {
    Digests found;
    auto cpu = open_device({"cpu", 0, true, "threads=1"});
    if (!cpu) return found;
    KernelChecks checks;
    for (size_t k : by_cases(*cpu->device)) {
      const std::string name = cpu->device->kernel(k).name;
      // Moves of tensors have one row for all instruction sets: "cpu.cast".
      if (!name.starts_with("cpu.baseline.") && name.find('.', 4) != name.npos) continue;
      auto report = checks.check(*cpu->device, k);
      if (report && report->failed == 0)
        found[{op_and_format(name), report->cases}] = {report->bits.value(),
                                                       report->bits_without_tiny.value()};
    }
    return found;
  }();
  return all;
}

// `only`: rows whose names contain it.
inline void check_kernels(const std::string& backend, const std::string& options,
                          const std::string& only = "") {
  auto opened = open_device({backend, 0, true, "tensors=1\n" + options});
  ASSERT_TRUE(opened) << opened.error().message;
  const Device& device = *opened->device;
  if (only.empty()) check_generic_rows(device, backend + ".gpu");
  int cases = 0, compared = 0;
  KernelChecks checks;
  for (size_t k : by_cases(device)) {
    const std::string name = device.kernel(k).name;
    if (name.find(only) == name.npos) continue;
    auto report = checks.check(device, k);
    ASSERT_TRUE(report) << name << ": " << report.error().message;
    EXPECT_GT(report->cases, 0) << name << ": " << report->not_run;
    cases += report->cases;
    for (const std::string& f : report->failures) ADD_FAILURE() << name << " " << f;
    const auto same = digests_of_the_cpu().find({op_and_format(name), report->cases});
    if (same == digests_of_the_cpu().end()) continue;
    // Mesa's software devices flush subnormal numbers.
    const bool flushes = device.describe().software && (backend == "vulkan" || backend == "webgpu");
    if (flushes && report->bits.value() != same->second.bits) {
      std::printf("%s: other bits than the CPU's below 2^-78\n", name.c_str());
      EXPECT_EQ(report->bits_without_tiny.value(), same->second.without_tiny)
          << name << ": other bits than the CPU's";
      compared++;
      continue;
    }
    EXPECT_EQ(report->bits.value(), same->second.bits) << name << ": other bits than the CPU's";
    compared++;
  }
  std::printf("%zu rows, %d cases; %d rows compared with the CPU's bits\n", device.kernel_count(), cases,
              compared);
  EXPECT_GE(device.kernel_count(), 100u);
  EXPECT_GE(compared, only.empty() ? 100 : 10);
}

// With launches of a few groups at a time: the host's part of it is the same for all kernels, so with
// fewer_cases() only products of matrices are checked.
inline void check_kernels_in_parts(const std::string& backend, const std::string& options) {
  check_kernels(backend, options, fewer_cases() ? ".mat_mul" : "");
}

}  // namespace gimbal::test
