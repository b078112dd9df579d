// What the GPU backends say decides which devices there are: the places where drivers are registered, moved
// by the user's variables.
#include <gtest/gtest.h>

#include <cstdlib>

#include "discovery/registry.h"
#include "gpu/depends.h"

namespace gimbal {
namespace {

class VulkanDependsTest : public testing::Test {
 protected:
  VulkanDependsTest() { clear(); }
  ~VulkanDependsTest() { clear(); }
  static void clear() {
    for (const char* name : {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_DATA_DIRS", "VK_DRIVER_FILES"})
      unsetenv(name);
  }
  static bool names(const std::string& line) {
    const gpu::Depends all = gpu::vulkan_depends();
    return all.text() && ("\n" + std::string(all.text())).find("\n" + line + "\n") != std::string::npos;
  }
};

TEST_F(VulkanDependsTest, WhereDriversAreRegistered) {
  for (const char* line :
       {"/usr/share/vulkan/icd.d/*", "/etc/vulkan/icd.d/*", "/usr/share/vulkan/implicit_layer.d/*", "VK_*",
        "MESA_*", "XDG_DATA_HOME", "VK_DRIVER_FILES", "/dev/dri/*", "/dev/nvidia*"})
    EXPECT_TRUE(names(line)) << line;
}

TEST_F(VulkanDependsTest, TheUsersPlacesFollowTheVariables) {
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  if (!home.empty()) { EXPECT_TRUE(names(home + "/.local/share/vulkan/icd.d/*")); }
  setenv("XDG_DATA_HOME", "/mine", 1), setenv("XDG_DATA_DIRS", "/one::/two", 1);
  EXPECT_TRUE(names("/mine/vulkan/icd.d/*"));
  EXPECT_FALSE(names(home + "/.local/share/vulkan/icd.d/*"));
  EXPECT_TRUE(names("/one/vulkan/icd.d/*") && names("/two/vulkan/icd.d/*"));
  EXPECT_TRUE(names("/usr/share/vulkan/icd.d/*")) << "the loader looks there, too";
  setenv("VK_DRIVER_FILES", "/a/driver.json:/folder", 1);
  EXPECT_TRUE(names("/a/driver.json") && names("/folder/*"));
}

TEST_F(VulkanDependsTest, APlaceThatDependsOnTheFolderOfTheProcessCannotBeTold) {
  for (const char* value : {"here/driver.json", "/a/driver.json:driver.json", "/a*/driver.json"}) {
    setenv("VK_DRIVER_FILES", value, 1);
    EXPECT_EQ(gpu::vulkan_depends().text(), nullptr) << value;
  }
}

TEST_F(VulkanDependsTest, EveryGpuBackendSaysIt) {
  for (const char* name : kBackendOrder) {
    const auto source = backend_registry().backends().source(name);
    if (!source.present || std::string(name) == "cpu") continue;
    auto library = backend_registry().backends().library(name);
    ASSERT_TRUE(library) << library.error().message;
    ASSERT_TRUE((*library)->table().depends_on) << name;
    EXPECT_TRUE((*library)->table().depends_on()) << name;
  }
}

}  // namespace
}  // namespace gimbal
