// Where backends are found, which one wins, and what is remembered of them.
#include "device/backends.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/file.h"
#include "device/device.h"
#include "device/reason.h"
#include "support/fake_backend.h"
#include "support/fake_plugins.h"
#include "support/loaded.h"

namespace gimbal {
namespace {

using test::PluginFolder;

const gimbal_backend* fake_entry() { return &test::fake_backend(); }
constexpr gimbal_backend_entry kOnlyFake[] = {fake_entry, nullptr};
constexpr gimbal_backend_entry kNone[] = {nullptr};

TEST(Backends, KnowsAllNamesInTheOrderOfChoice) {
  const Backends none({}, kNone);
  const std::vector<std::string> order(std::begin(kBackendOrder), std::end(kBackendOrder));
  EXPECT_EQ(none.names(), order);
  for (const std::string& name : order) EXPECT_FALSE(none.source(name).present) << name;

  PluginFolder folder;
  folder.put("zither"), folder.put("abacus"), folder.put("vulkan");
  auto expected = order;
  expected.insert(expected.end(), {"fake", "abacus", "zither"});
  EXPECT_EQ(Backends({folder.path()}, kOnlyFake).names(), expected)
      << "linked ones, then what was found, by name";
}

TEST(Backends, WhatIsNotThereIsNotBuilt) {
  Backends b({"/there/is/no/such/folder", "/dev/null", ""}, kNone);
  for (const char* name : {"cuda", "cpu", "never heard of"}) {
    auto l = b.library(name);
    ASSERT_FALSE(l) << name;
    EXPECT_EQ(l.error().code, Code::NoBackend);
    EXPECT_STREQ(l.error().reason, reason::kNotBuilt);
    EXPECT_NE(l.error().message.find(name), std::string::npos) << l.error().message;
    EXPECT_NE(l.error().remedy.find("GIMBAL_BACKEND_PATH"), std::string::npos) << l.error().remedy;
    const bool has_option = l.error().remedy.find(" -DGIMBAL_BACKEND_C") != std::string::npos;
    EXPECT_EQ(has_option, name != std::string("never heard of")) << l.error().remedy;
    EXPECT_FALSE(b.source(name).present);
    EXPECT_EQ(b.source(name).name, name);
  }
}

TEST(Backends, OnlyFilesWithTheRightNamesCount) {
  PluginFolder folder;
  for (const char* name :
       {"libgimbal-backend-.so", "libgimbal-backend-Cuda.so", "libgimbal-backend-cuda.so.1",
        "gimbal-backend-cuda.so", "libgimbal-backend-cu da.so", "libgimbal-backend-../cuda.so",
        "libgimbal-backend-cuda", "libvulkan.so", "backend-.so"})
    (void)write_file(folder.path() + "/" + name, "x");
  EXPECT_EQ(Backends({folder.path()}, kNone).names().size(), std::size(kBackendOrder));
  EXPECT_FALSE(Backends({folder.path()}, kNone).source("cuda").present);
}

TEST(Backends, TheFirstFolderWinsAndWhatIsLinkedWinsOverAll) {
  PluginFolder first, second;
  first.put("vulkan"), second.put("vulkan", "", "v2"), second.put("opencl", "", "v2"), first.put("fake");
  Backends b({first.path(), second.path()}, kOnlyFake);
  EXPECT_EQ(b.source("vulkan").path, first.file("vulkan"));
  EXPECT_EQ(b.source("opencl").path, second.file("opencl"));
  EXPECT_FALSE(b.source("opencl").linked);
  EXPECT_TRUE(b.source("opencl").present);
  EXPECT_TRUE(b.source("fake").linked);
  EXPECT_EQ(b.source("fake").path, "");
  auto fake = b.library("fake");
  ASSERT_TRUE(fake);
  EXPECT_EQ((*fake)->path(), "");
  EXPECT_EQ((*fake)->table().open, test::fake_backend().open);
}

TEST(Backends, NothingIsOpenedBeforeItIsAskedFor) {
  PluginFolder folder;
  folder.put("lazy");
  Backends b({folder.path()}, kNone);
  EXPECT_TRUE(b.source("lazy").present);
  EXPECT_FALSE(test::loaded("lazy"));
  ASSERT_TRUE(b.library("lazy"));
  EXPECT_TRUE(test::loaded("lazy"));
}

TEST(Backends, AllThreadsGetTheSameLibrary) {
  PluginFolder folder;
  folder.put("shared");
  Backends b({folder.path()}, kNone);
  std::vector<LibraryPtr> got(8);
  std::vector<std::thread> threads;
  for (LibraryPtr& mine : got)
    threads.emplace_back([&] {
      auto l = b.library("shared");
      if (l) mine = *l;
    });
  for (std::thread& t : threads) t.join();
  ASSERT_NE(got[0], nullptr);
  EXPECT_EQ(std::set<LibraryPtr>(got.begin(), got.end()).size(), 1u);
}

TEST(Backends, AFailureIsRemembered) {
  PluginFolder folder;
  folder.put("broken", "abi=9");
  Backends b({folder.path()}, kNone);
  auto l = b.library("broken");
  ASSERT_FALSE(l);
  EXPECT_STREQ(l.error().reason, reason::kAbiMismatch);
  folder.put("broken");  // a better file
  auto again = b.library("broken");
  ASSERT_FALSE(again) << "one answer for the life of the process";
  EXPECT_EQ(again.error().message, l.error().message);
  ASSERT_TRUE(b.reload(folder.file("broken"), {}));
  EXPECT_TRUE(b.library("broken")) << "but for a reload";
}

TEST(Backends, AFileNamedAfterAnotherBackendIsRefused) {
  PluginFolder folder;
  folder.put("cuda", "named=other");
  Backends b({folder.path()}, kNone);
  auto l = b.library("cuda");
  ASSERT_FALSE(l);
  EXPECT_STREQ(l.error().reason, reason::kBrokenPlugin);
  for (const char* word : {"libgimbal-backend-cuda.so", "'other'", "'cuda'"})
    EXPECT_NE(l.error().message.find(word), std::string::npos) << l.error().message;
  EXPECT_FALSE(test::loaded("cuda"));
}

}  // namespace
}  // namespace gimbal
