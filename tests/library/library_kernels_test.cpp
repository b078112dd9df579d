// The kernel registry through the public interface.
#include <gimbal/engine.h>
#include <gtest/gtest.h>

namespace gimbal {
namespace {

TEST(LibraryKernels, AreAskedByName) {
  Engine engine;
  const KernelCapabilities all = engine.kernel_capabilities();
  EXPECT_EQ(all.kernels.size(), 13u);
  for (const NamedKernelState& k : all.kernels) {
    const auto capable = engine.is_capable_of(k.name);
    ASSERT_TRUE(bool(capable)) << k.name;
    EXPECT_EQ(*capable, k.capable()) << k.name;
  }
  // Any kernel of the table, and patterns over their names.
  for (const Kernel& k : engine.kernels()) {
    if (k.op != "rms_norm") continue;
    const auto capable = engine.is_capable_of(k.name);
    ASSERT_TRUE(bool(capable)) << k.name;
    EXPECT_EQ(*capable, k.missing.empty()) << k.name;
  }
  EXPECT_TRUE(*engine.is_capable_of("cpu.*.mat_mul.q8_0"));
  const auto unknown = engine.is_capable_of("cpu.avx9.mat_mul.q8_0");
  ASSERT_FALSE(bool(unknown));
  EXPECT_EQ(unknown.error().code, Code::Usage);
}

TEST(LibraryKernels, TheLargestContextOfAModel) {
  Engine engine;
  const auto largest = engine.max_context_length("default");
  ASSERT_TRUE(bool(largest)) << largest.error().message;
  EXPECT_EQ(*largest, 512);  // what it was trained on: its cache takes a few megabytes
  EXPECT_FALSE(bool(engine.max_context_length("no-such-model")));
}

}  // namespace
}  // namespace gimbal
