// Every kernel of the GPU backends on an OpenCL device, against the double-precision reference: as they are,
// with matrices in parts, and from programs that were kept.
#define TESTED_BACKEND "opencl"
#include <unistd.h>

#include <filesystem>

#include "gpu/device_main.h"
#include "gpu/kernels_checks.h"

namespace gimbal::test {
namespace {

TEST(OpenclKernels, AgreeInParts) { check_kernels_in_parts("opencl", device_options("part=5000")); }

TEST(OpenclKernels, AgreeFromSourceAndFromKeptPrograms) {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / ("gimbal_opencl_kernels_" + std::to_string(getpid()));
  const std::string options = device_options("cache=" + folder.string());
  check_kernels("opencl", options);
  size_t kept = 0;
  for (const auto& e : std::filesystem::directory_iterator(folder))
    kept += e.path().extension() == ".program";
  EXPECT_GE(kept, 60u);
  check_kernels("opencl", options);
  std::filesystem::remove_all(folder);
}

TEST(OpenclKernels, RefuseOptionsThatNobodyKnows) {
  for (const char* options : {"colour=red", "staging=1", "part="}) {
    auto opened = open_device({"opencl", 0, true, options});
    ASSERT_FALSE(opened) << options;
    EXPECT_NE(opened.error().message.find(std::string(options).substr(0, 4)), std::string::npos)
        << opened.error().message;
  }
}

}  // namespace
}  // namespace gimbal::test
