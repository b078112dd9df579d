// Kernel texts with one wrong word each, on any runtime: conformance has to notice each mutant, and to accept
// the very same texts without it. The build makes them (mutants/make_mutants.py), and mutants.inc lists them.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "conformance/conformance.h"
#include "device/backend_impl.h"
#include "device/device.h"
#include "gpu/device.h"

namespace gimbal::test {

struct Mutant {
  const char *name, *kernel, *row,
      *change;  // row: without the backend's name; change: empty for the unchanged text
};

// Target: `static gpu::Failure open(gpu::Options&, std::unique_ptr<gpu::Runtime>*)`, `static
// std::span<const gpu::KernelCode> mutants()` and `kernels()`: those that the row needs besides, which may
// be none.
template <class Target>
struct MutantApi {
  static constexpr const char* kName = "mutant";
  static inline const Mutant* now = nullptr;
  static inline std::vector<gpu::KernelCode> kernels;

  static int count() { return 1; }
  static gpu::Failure open(int, gpu::Options& options, gpu::Opened* out) {
    const auto others = Target::kernels(), mutants = Target::mutants();
    kernels.assign(others.begin(), others.end());
    std::erase_if(kernels, [](const auto& k) { return k.name == now->kernel; });
    kernels.push_back(
        *std::find_if(mutants.begin(), mutants.end(), [](const auto& m) { return m.name == now->name; }));
    kernels.back().name = now->kernel;
    out->kernels = kernels;
    return Target::open(options, &out->runtime);
  }
};

// "" when the row passes, else what was wrong first.
template <class Target>
std::string verdict(const Mutant& m, const std::string& options = "") {
  static constexpr gimbal_backend table = BackendTable<gpu::DeviceOf<MutantApi<Target>>>::make("mutant");
  MutantApi<Target>::now = &m;
  auto device = Device::open(table, 0, options);
  EXPECT_TRUE(device) << device.error().message;
  if (!device) return "";
  for (size_t k = 0; k < (*device)->kernel_count(); k++)
    if ((*device)->kernel(k).name == std::string("mutant.") + m.row) {
      auto report = check_kernel(**device, k);
      if (!report) return report.error().message;  // the emulator finds words that are not the kernel's
      return report->failures.empty() ? "" : report->failures[0];
    }
  ADD_FAILURE() << "no row " << m.row;
  return "";
}

template <class Target>
void check_mutants(std::span<const Mutant> all, int fewest_wrong, int fewest_right,
                   const std::string& options = "") {
  int wrong = 0, right = 0;
  for (const Mutant& m : all) {
    const std::string found = verdict<Target>(m, options);
    if (!*m.change) {
      EXPECT_EQ(found, "") << m.name;
      right++;
    } else {
      EXPECT_NE(found, "") << m.kernel << " passes with " << m.change;
      std::printf("%-18s %-60s %s\n", m.kernel, m.change, found.substr(0, 110).c_str());
      wrong++;
    }
  }
  std::printf("%d mutants found, %d unchanged texts accepted\n", wrong, right);
  EXPECT_GE(wrong, fewest_wrong);
  EXPECT_GE(right, fewest_right);
}

}  // namespace gimbal::test
