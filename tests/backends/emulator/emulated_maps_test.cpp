// The GPU's text of the maps on the emulator, with its checks: the bits of the CPU.
#include "backends/emulator/runtime.h"
#include "gpu/maps_checks.h"

namespace gimbal::gpu {

std::span<const KernelCode> tensor_emulator_modules();

namespace {

TEST(EmulatedMaps, HaveTheBitsOfTheCpu) {
  auto runtime = emulator::open({});
  ASSERT_TRUE(runtime);
  check_maps(*runtime, tensor_emulator_modules());
}
TEST(EmulatedMaps, PassTheChecksOfTheEmulator) {
  auto runtime = emulator::open({.racecheck = true});
  ASSERT_TRUE(runtime);
  check_maps(*runtime, tensor_emulator_modules());
}

}  // namespace
}  // namespace gimbal::gpu
