// Every kernel of the GPU backends on a Vulkan device, against the double-precision reference: as they are,
// with matrices in parts, and with every copy through staging under the validation layer.
#define TESTED_BACKEND "vulkan"
#include "gpu/device_main.h"
#include "gpu/kernels_checks.h"

namespace gimbal::test {
namespace {

TEST(VulkanKernels, AgreeWithTheReference) { check_kernels("vulkan", device_options()); }
TEST(VulkanKernels, AgreeInParts) { check_kernels_in_parts("vulkan", device_options("part=5000")); }
TEST(VulkanKernels, AgreeWithoutADeviceFma) {
  check_kernels("vulkan", device_options("split_fma=1\nstaging=1"));
}

TEST(VulkanKernels, RefuseOptionsThatNobodyKnows) {
  for (const char* options : {"colour=red", "staging=2", "validation=yes", "part="}) {
    auto opened = open_device({"vulkan", 0, true, options});
    ASSERT_FALSE(opened) << options;
    EXPECT_NE(opened.error().message.find(std::string(options).substr(0, 4)), std::string::npos)
        << opened.error().message;
  }
}

}  // namespace
}  // namespace gimbal::test
