// The table of vendor libraries: what each backend opens on each system.
#include "base/vendor_libraries.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace gimbal {
namespace {

std::vector<std::string> names(const VendorLibraryFiles& files) {
  std::vector<std::string> all;
  for (size_t i = 0; files[i]; i++) all.emplace_back(files[i]);
  return all;
}
using Names = std::vector<std::string>;

TEST(VendorLibraries, DriversOfEachSystemInTheOrderOfTrying) {
  constexpr auto l = System::Linux, m = System::MacOs, w = System::Windows;
  EXPECT_EQ(names(driver_files("cuda", l)), Names{"libcuda.so.1"});
  EXPECT_EQ(names(driver_files("cuda", w)), Names{"nvcuda.dll"});
  EXPECT_EQ(names(driver_files("cuda", m)), Names{}) << "NVIDIA makes none";
  EXPECT_EQ(names(driver_files("rocm", l)),
            (Names{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}));
  EXPECT_EQ(names(driver_files("rocm", w)), (Names{"amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"}));
  EXPECT_EQ(names(driver_files("vulkan", l)), Names{"libvulkan.so.1"});
  EXPECT_EQ(names(driver_files("vulkan", w)), Names{"vulkan-1.dll"});
  EXPECT_EQ(names(driver_files("vulkan", m)), (Names{"libvulkan.1.dylib", "libMoltenVK.dylib"}));
  EXPECT_EQ(names(driver_files("opencl", l)), Names{"libOpenCL.so.1"});
  EXPECT_EQ(names(driver_files("opencl", w)), Names{"OpenCL.dll"});
  EXPECT_EQ(names(driver_files("opencl", m)), Names{"/System/Library/Frameworks/OpenCL.framework/OpenCL"});
  EXPECT_EQ(names(driver_files("webgpu", l)),
            (Names{"libwebgpu_dawn.so", "libwebgpu.so", "libwgpu_native.so"}));
  EXPECT_EQ(names(driver_files("webgpu", w)), (Names{"webgpu_dawn.dll", "webgpu.dll", "wgpu_native.dll"}));
}

TEST(VendorLibraries, CompilersOfKernelTexts) {
  EXPECT_EQ(names(compiler_files("cuda", System::Linux))[0], "libnvrtc.so.12");
  EXPECT_EQ(names(compiler_files("cuda", System::Windows))[0], "nvrtc64_120_0.dll");
  const Names hip = names(compiler_files("rocm", System::Linux));
  EXPECT_EQ(hip.size(), 5u);
  EXPECT_EQ(hip[3], "libamdhip64.so.5") << "ROCm 5 has the compiler in the runtime";
  EXPECT_EQ(names(compiler_files("vulkan", System::MacOs))[0], "libshaderc.1.dylib");
  EXPECT_EQ(names(compiler_files("opencl", System::Linux)), Names{}) << "its driver compiles texts";
}

// A name has the form of its system, and each backend has a driver on Linux.
TEST(VendorLibraries, FormsAndBackends) {
  std::set<std::string_view> backends;
  for (const VendorLibrary& l : kVendorLibraries) {
    const std::string_view file = l.file;
    switch (l.system) {
      case System::Linux:
        EXPECT_TRUE(file.starts_with("lib") && file.find(".so") != file.npos) << file;
        if (!l.compiles) backends.insert(l.backend);
        break;
      case System::MacOs:
        EXPECT_TRUE(file.ends_with(".dylib") || file.find(".framework/") != file.npos);
        break;
      case System::Windows: EXPECT_TRUE(file.ends_with(".dll")) << file; break;
    }
  }
  EXPECT_EQ(backends, (std::set<std::string_view>{"cuda", "opencl", "rocm", "vulkan", "webgpu"}));
}

}  // namespace
}  // namespace gimbal
