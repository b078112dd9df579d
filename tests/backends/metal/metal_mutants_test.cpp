// A generated Metal text with one wrong word must not pass: metal/mutants.txt names words of the texts and
// wrong ones to put there; conformance has to notice each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "backends/metal/backend.h"
#include "backends/metal/fake/control.h"
#include "conformance/conformance.h"
#include "device/backend_impl.h"
#include "device/device.h"

extern "C" const gimbal_backend* gimbal_backend_metal_pretended(void);

namespace gimbal::test {
std::span<const CompiledText> mutant_texts();  // in the order of mutants.txt
namespace {

struct Mutant {
  const char *kernel, *row, *change;
};
constexpr Mutant kMutants[] = {
#include "mutants.inc"
};

// The Metal backend with one kernel exchanged.
struct Api {
  static constexpr const char* kName = "mutant";
  static size_t& now() {
    static size_t i = 0;
    return i;
  }
  static std::vector<gpu::KernelCode>& kernels() {
    static std::vector<gpu::KernelCode> all;
    return all;
  }
  static int count() { return 1; }
  static gpu::Failure open(int, gpu::Options& options, gpu::Opened* out) {
    if (auto f = metal::Api::open(0, options, out)) return f;
    kernels().assign(out->kernels.begin(), out->kernels.end());
    const CompiledText& text = mutant_texts()[now()];
    for (gpu::KernelCode& k : kernels())
      if (k.name == kMutants[now()].kernel)
        k.code = {reinterpret_cast<const uint8_t*>(text.text), size_t(text.bytes)};
    out->kernels = kernels();
    return {};
  }
};

TEST(MetalMutants, AreAllFound) {
  static constexpr gimbal_backend table = BackendTable<gpu::DeviceOf<Api>>::make("mutant");
  ASSERT_NE(gimbal_backend_metal_pretended(), nullptr);  // it brings the engine's texts
  know_texts(mutant_texts());
  ASSERT_EQ(std::size(kMutants), mutant_texts().size());
  EXPECT_GE(std::size(kMutants), 20u);
  for (size_t i = 0; i < std::size(kMutants); i++) {
    const Mutant& m = kMutants[i];
    Api::now() = i;
    auto device = Device::open(table, 0);
    ASSERT_TRUE(device) << device.error().message;
    std::string found;
    bool there = false;
    for (size_t k = 0; k < (*device)->kernel_count(); k++) {
      if ((*device)->kernel(k).name != std::string("mutant.") + m.row) continue;
      there = true;
      auto report = check_kernel(**device, k);
      found = !report ? report.error().message : report->failures.empty() ? "" : report->failures[0];
    }
    EXPECT_TRUE(there) << "no row " << m.row;
    EXPECT_NE(found, "") << m.kernel << " passes with " << m.change;
    std::printf("%-18s %-60s %s\n", m.kernel, m.change, found.substr(0, 110).c_str());
  }
}

}  // namespace
}  // namespace gimbal::test
