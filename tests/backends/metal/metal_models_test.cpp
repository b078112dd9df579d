// Whole models on Metal: the bits of the CPU. Off Apple's systems: on a pretended Metal (metal/metal.cmake).
#define TESTED_BACKEND "metal"
#include "gpu/device_main.h"
#include "gpu/models_checks.h"

namespace gimbal::test {
namespace {

ModelSetting metal(const std::string& more = "") { return {"metal", device_options(more)}; }

TEST(MetalModels, GiveTheBitsOfTheCpu) { check_bits_of_the_cpu(metal()); }
TEST(MetalModels, GiveTheBitsOfTheCpuWithEveryCacheOnACard) { check_every_cache(metal("staging=1")); }
TEST(MetalModels, GiveTheSameBitsForAnyBatchAndSplitAndInParts) { check_batches_and_splits(metal()); }
TEST(MetalModels, ContinueAsTheReferenceDoes) { check_continuations(metal()); }
TEST(MetalModels, GiveTheBitsOfTheCpuWithAnAdapter) { check_lora(metal()); }
TEST(MetalModels, TellTheStoryThatTheCpuTells) { check_story(metal()); }

}  // namespace
}  // namespace gimbal::test
