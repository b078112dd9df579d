// Layers over OpenCL devices and the CPU: the bits of the CPU.
#define TESTED_BACKEND "opencl"
#include "gpu/device_main.h"
#include "gpu/layers_checks.h"

namespace gimbal::test {
namespace {

TEST(OpenclLayers, GiveTheBitsOfTheCpu) { check_split_points("opencl", device_options()); }
TEST(OpenclLayers, ExpertsElsewhereGiveTheBitsOfTheCpu) { check_experts("opencl", device_options()); }
TEST(OpenclLayers, AConversationMovesThereAndBack) { check_moving("opencl", device_options()); }
TEST(OpenclLayers, HaveTheBytesOfThePlan) { check_bytes("opencl", device_options()); }

}  // namespace
}  // namespace gimbal::test
