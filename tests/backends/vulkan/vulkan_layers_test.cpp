// Layers over Vulkan devices and the CPU: the bits of the CPU.
#define TESTED_BACKEND "vulkan"
#include "gpu/device_main.h"
#include "gpu/layers_checks.h"

namespace gimbal::test {
namespace {

TEST(VulkanLayers, GiveTheBitsOfTheCpu) { check_split_points("vulkan", device_options()); }
TEST(VulkanLayers, ExpertsElsewhereGiveTheBitsOfTheCpu) { check_experts("vulkan", device_options()); }
TEST(VulkanLayers, AConversationMovesThereAndBack) { check_moving("vulkan", device_options()); }
TEST(VulkanLayers, HaveTheBytesOfThePlan) { check_bytes("vulkan", device_options()); }

}  // namespace
}  // namespace gimbal::test
