// Whole models on a Vulkan device: the bits of the CPU.
#define TESTED_BACKEND "vulkan"
#include "gpu/device_main.h"
#include "gpu/models_checks.h"

namespace gimbal::test {
namespace {

ModelSetting vulkan(const std::string& more = "") { return {"vulkan", device_options(more)}; }

TEST(VulkanModels, GiveTheBitsOfTheCpu) { check_bits_of_the_cpu(vulkan()); }
TEST(VulkanModels, GiveTheBitsOfTheCpuWithEveryCache) { check_every_cache(vulkan()); }
TEST(VulkanModels, GiveTheSameBitsForAnyBatchAndSplitAndInParts) {
  check_batches_and_splits(vulkan(), {vulkan("staging=1"), vulkan("split_fma=1")});
}
TEST(VulkanModels, ContinueAsTheReferenceDoes) { check_continuations(vulkan()); }
TEST(VulkanModels, DrawTheSameTokensFromTheLeadingLogits) { check_sampling(vulkan()); }
TEST(VulkanModels, GiveTheBitsOfTheCpuWithAnAdapter) { check_lora(vulkan()); }
TEST(VulkanModels, GiveTheSameBitsToSeveralThreads) { check_threads(vulkan()); }
TEST(VulkanModels, TellTheStoryThatTheCpuTells) { check_story(vulkan()); }

}  // namespace
}  // namespace gimbal::test
