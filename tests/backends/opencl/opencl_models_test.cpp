// Whole models on an OpenCL device: the bits of the CPU.
#define TESTED_BACKEND "opencl"
#include "gpu/device_main.h"
#include "gpu/models_checks.h"

namespace gimbal::test {
namespace {

ModelSetting opencl(const std::string& more = "") { return {"opencl", device_options(more)}; }

TEST(OpenclModels, GiveTheBitsOfTheCpu) { check_bits_of_the_cpu(opencl(), Which::All); }
TEST(OpenclModels, GiveTheBitsOfTheCpuWithEveryCache) { check_every_cache(opencl()); }
TEST(OpenclModels, GiveTheSameBitsForAnyBatchAndSplitAndInParts) { check_batches_and_splits(opencl()); }
TEST(OpenclModels, ContinueAsTheReferenceDoes) { check_continuations(opencl()); }
TEST(OpenclModels, DrawTheSameTokensFromTheLeadingLogits) { check_sampling(opencl()); }
TEST(OpenclModels, GiveTheBitsOfTheCpuWithAnAdapter) { check_lora(opencl()); }
TEST(OpenclModels, GiveTheSameBitsToSeveralThreads) { check_threads(opencl()); }
TEST(OpenclModels, TellTheStoryThatTheCpuTells) { check_story(opencl()); }

}  // namespace
}  // namespace gimbal::test
