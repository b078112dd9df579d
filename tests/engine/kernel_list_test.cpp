// The list of kernels: those of devices that are there, and why a backend that is there has none.
#include "engine/kernel_list.h"

#include <gtest/gtest.h>

#include "support/fake_plugins.h"

namespace gimbal {
namespace {

TEST(KernelList, SaysWhyABackendHasNone) {
  test::PluginFolder folder;
  folder.put("metal", "crash");
  BackendPlaces places;
  places.folders = {folder.path()};
  Registry registry(places);
  const KernelList all = list_kernels(registry);
  EXPECT_FALSE(all.kernels.empty()) << "those of the CPU";
  ASSERT_EQ(all.notes.size(), 1u) << "and nothing of backends that are not there";
  EXPECT_TRUE(all.notes[0].starts_with("metal: ")) << all.notes[0];
  EXPECT_NE(all.notes[0].find("SIGSEGV"), std::string::npos) << all.notes[0];
}

}  // namespace
}  // namespace gimbal
