// A kernel text with one wrong word must not pass: mutants.txt names words of every text and wrong ones to
// put there; conformance has to notice each, and to accept the very same texts without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "backends/emulator/runtime.h"
#include "backends/simt/device.h"
#include "backends/simt/modules.h"
#include "device/backend_impl.h"
#include "device/device.h"
#include "program/conformance.h"

namespace gimbal::simt {
std::span<const KernelCode> mutant_emulator_modules();
}

namespace gimbal::test {
namespace {

struct Mutant {
  const char *name, *kernel, *row,
      *change;  // row: without the backend's name; change: empty for the unchanged text
};
constexpr Mutant kMutants[] = {
#define MUTANT(name, kernel, row, change) {name, kernel, row, change},
#include "mutants.inc"
#undef MUTANT
};

// The emulator with one kernel exchanged.
struct Api {
  static constexpr const char* kName = "mutant";
  static const Mutant*& now() {
    static const Mutant* m = nullptr;
    return m;
  }
  static std::vector<simt::KernelCode>& kernels() {
    static std::vector<simt::KernelCode> all;
    return all;
  }
  static int count() { return 1; }
  static simt::Failure open(int, simt::Options&, simt::Opened* out) {
    const auto mutants = simt::mutant_emulator_modules(), real = simt::emulator_modules();
    kernels().assign(real.begin(), real.end());
    for (simt::KernelCode& k : kernels())
      if (k.name == now()->kernel) {
        k = *std::find_if(mutants.begin(), mutants.end(),
                          [](const auto& m) { return m.name == now()->name; });
        k.name = now()->kernel;
      }
    emulator::Options o;
    o.bounds = true;
    *out = {emulator::open(o), kernels()};
    return {};
  }
};

// "" when the row passes, else what was wrong first.
std::string verdict(const Mutant& m) {
  static constexpr gimbal_backend table = BackendTable<simt::DeviceOf<Api>>::make("mutant");
  Api::now() = &m;
  auto device = Device::open(table, 0);
  EXPECT_TRUE(device) << device.error().message;
  for (size_t k = 0; k < (*device)->kernel_count(); k++)
    if ((*device)->kernel(k).name == std::string("mutant.") + m.row) {
      auto report = check_kernel(**device, k);
      if (!report) return report.error().message;
      return report->failures.empty() ? "" : report->failures[0];
    }
  ADD_FAILURE() << "no row " << m.row;
  return "";
}

TEST(EmulatedMutants, AreAllFoundAndTheUnchangedTextsPass) {
  int wrong = 0, right = 0;
  for (const Mutant& m : kMutants) {
    const std::string found = verdict(m);
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
  EXPECT_GE(wrong, 30);
  EXPECT_GE(right, 15);
}

}  // namespace
}  // namespace gimbal::test
