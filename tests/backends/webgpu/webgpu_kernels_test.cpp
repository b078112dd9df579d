// Every kernel of the GPU backends on a WebGPU device, against the double-precision reference: as they are,
// and with matrices in parts.
#define TESTED_BACKEND "webgpu"
#include "gpu/device_main.h"
#include "gpu/kernels_checks.h"

namespace gimbal::test {
namespace {

TEST(WebGpuKernels, AgreeWithTheReference) { check_kernels("webgpu", device_options()); }
TEST(WebGpuKernels, AgreeInParts) { check_kernels_in_parts("webgpu", device_options("part=5000")); }

TEST(WebGpuKernels, RefuseOptionsThatNobodyKnows) {
  for (const char* options : {"colour=red", "split_fma=2", "memory=much", "part="}) {
    auto opened = open_device({"webgpu", 0, true, options});
    ASSERT_FALSE(opened) << options;
    EXPECT_NE(opened.error().message.find(std::string(options).substr(0, 4)), std::string::npos)
        << opened.error().message;
  }
}

}  // namespace
}  // namespace gimbal::test
