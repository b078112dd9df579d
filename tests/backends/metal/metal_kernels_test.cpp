// Every kernel of the GPU backends on Metal, against the double-precision reference: as they are, with
// matrices in parts, and on a card with memory of its own. Off Apple's systems: on a pretended Metal
// (metal/metal.cmake).
#define TESTED_BACKEND "metal"
#include "gpu/device_main.h"
#include "gpu/kernels_checks.h"

namespace gimbal::test {
namespace {

TEST(MetalKernels, AgreeWithTheReference) { check_kernels("metal", device_options()); }
TEST(MetalKernels, AgreeInPartsOnACard) {
  check_kernels_in_parts("metal", device_options("part=5000\nstaging=1"));
}

TEST(MetalKernels, RefuseOptionsThatNobodyKnows) {
  for (const char* options : {"colour=red", "staging=2", "part="}) {
    auto opened = open_device({"metal", 0, true, options});
    ASSERT_FALSE(opened) << options;
    EXPECT_NE(opened.error().message.find(std::string(options).substr(0, 4)), std::string::npos)
        << opened.error().message;
  }
}

}  // namespace
}  // namespace gimbal::test
