// The key under which findings about a device are kept: it changes with everything that may change them.
#include "engine/machine_cache.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "device/backends.h"
#include "support/fake_plugins.h"

extern "C" const gimbal_backend* gimbal_backend_cpu();

namespace gimbal {
namespace {

Json key_of_plugin(const std::string& path) {
  auto library = Library::open(path);
  EXPECT_TRUE(library) << library.error().message;
  auto device = Device::open(*library, 0);
  EXPECT_TRUE(device) << device.error().message;
  return key_of(**device);
}

Json key_of_cpu(const char* options) {
  auto device = Device::open(*gimbal_backend_cpu(), 0, options);
  EXPECT_TRUE(device) << device.error().message;
  return key_of(**device);
}

TEST(MachineCache, ADeviceOfThisProgramHasItsBuildAndThreads) {
  ASSERT_FALSE(build_id().empty());
  const Json two = key_of_cpu("threads=2");
  EXPECT_EQ(two["build"].get<std::string>(), build_id());
  EXPECT_EQ(two["device"], "cpu:0");
  EXPECT_NE(two, key_of_cpu("threads=1"));
  EXPECT_EQ(two, key_of_cpu("threads=2"));
}

// A new program may choose and verify differently, and a new plugin may compute differently.
TEST(MachineCache, APluginHasBothBuilds) {
  test::PluginFolder folder;
  const std::string one = folder.put("whole"), two = folder.put("second", "", "v2");
  for (const std::string& path : {one, two}) {
    const std::string its = (*Library::open(path))->build_id();
    EXPECT_EQ(key_of_plugin(path)["build"].get<std::string>(), build_id() + "+" + its);
  }
  EXPECT_NE(key_of_plugin(one)["build"], key_of_plugin(two)["build"]);
}

}  // namespace
}  // namespace gimbal
