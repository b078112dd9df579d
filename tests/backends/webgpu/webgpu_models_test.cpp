// Whole models on a WebGPU device: the bits of the CPU.
#define TESTED_BACKEND "webgpu"
#include "gpu/device_main.h"
#include "gpu/models_checks.h"

namespace gimbal::test {
namespace {

ModelSetting webgpu(const std::string& more = "") { return {"webgpu", device_options(more)}; }

TEST(WebGpuModels, GiveTheBitsOfTheCpu) { check_bits_of_the_cpu(webgpu()); }
TEST(WebGpuModels, GiveTheBitsOfTheCpuWithEveryCache) { check_every_cache(webgpu()); }
TEST(WebGpuModels, GiveTheSameBitsForAnyBatchAndSplitAndInParts) { check_batches_and_splits(webgpu()); }
TEST(WebGpuModels, ContinueAsTheReferenceDoes) { check_continuations(webgpu()); }
TEST(WebGpuModels, GiveTheBitsOfTheCpuWithAnAdapter) { check_lora(webgpu()); }
TEST(WebGpuModels, GiveTheSameBitsToSeveralThreads) { check_threads(webgpu()); }
TEST(WebGpuModels, TellTheStoryThatTheCpuTells) { check_story(webgpu()); }

}  // namespace
}  // namespace gimbal::test
