// Vulkan where there is no driver: no device, and a reason that a person can act on.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "backends/vulkan/runtime.h"
#include "device/reason.h"
#include "discovery/registry.h"

namespace gimbal {
namespace {

class VulkanWithoutDriver : public testing::Test {
 protected:
  static const char* expected() {
    std::unique_ptr<gpu::Runtime> runtime;
    return vulkan::open(0, {}, &runtime).text.find("cannot be opened") != std::string::npos
               ? reason::kLibraryMissing
               : reason::kNoDevice;
  }
  static void SetUpTestSuite() {
    setenv("VK_DRIVER_FILES", "/nonexistent.json", 1), setenv("VK_ICD_FILENAMES", "/nonexistent.json", 1);
  }
};

TEST_F(VulkanWithoutDriver, HasNoDeviceAndAReason) {
  EXPECT_EQ(vulkan::device_count(), 0);
  std::unique_ptr<gpu::Runtime> runtime;
  gpu::Failure f = vulkan::open(0, {}, &runtime);
  EXPECT_EQ(f.code, gpu::Failure::Unsupported);
  EXPECT_EQ(runtime, nullptr);
  std::printf("%s\n", f.text.c_str());
  const bool no_library = f.text.find("libvulkan.so.1: cannot open") != std::string::npos;
  EXPECT_TRUE(no_library || f.text.find("no driver") != std::string::npos) << f.text;
  EXPECT_STREQ(f.reason, no_library ? reason::kLibraryMissing : reason::kNoDevice);
  EXPECT_NE(f.text.find("install"), std::string::npos) << f.text;
}

TEST_F(VulkanWithoutDriver, LibrariesThatAreNone) {
  std::unique_ptr<gpu::Runtime> runtime;
  vulkan::Options options;
  for (const char* library : {"/nonexistent/libvulkan.so", "libm.so.6"}) {
    options.library = library;
    const gpu::Failure f = vulkan::open(0, options, &runtime);
    EXPECT_STREQ(f.reason, reason::kLibraryMissing) << f.text;
    auto opened = open_device({"vulkan", 0, true, "library=" + options.library});
    ASSERT_FALSE(opened);
    EXPECT_STREQ(opened.error().reason, reason::kLibraryMissing) << opened.error().message;
  }
}

TEST_F(VulkanWithoutDriver, IsReportedWithTheReason) {
  for (const BackendReport& r : discover_backends()) {
    if (r.backend != "vulkan") continue;
    EXPECT_FALSE(r.available);
    EXPECT_EQ(r.reason, expected());
    EXPECT_NE(r.message.find("Vulkan library"), std::string::npos) << r.message;
    EXPECT_EQ(r.remedy.find("install"), 0u) << r.remedy;
  }
  auto strict = open_device({"vulkan", 0, true, ""});
  ASSERT_FALSE(strict);
  EXPECT_NE(strict.error().message.find("install"), std::string::npos) << strict.error().message;
  EXPECT_STREQ(strict.error().reason, expected());
  auto fallback = open_device({"vulkan", 0, false, ""});
  ASSERT_TRUE(fallback);
  EXPECT_STREQ(fallback->device->backend(), "cpu");
  ASSERT_EQ(fallback->fallbacks.size(), 1u);
  EXPECT_NE(fallback->fallbacks[0].sentence().find("install"), std::string::npos)
      << fallback->fallbacks[0].sentence();
}

}  // namespace
}  // namespace gimbal
