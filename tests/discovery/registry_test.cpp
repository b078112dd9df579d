// Opening a device by the user's words: what is chosen, and every "no" with its reason.
#include "discovery/registry.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/fake_backend.h"
#include "support/fake_plugins.h"

namespace gimbal {
namespace {

void mentions(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* w : words) EXPECT_NE(text.find(w), std::string::npos) << "'" << w << "' in: " << text;
}

bool built(const std::string& name) {
  for (LinkedBackends e = linked_backends(); *e; ++e)
    if (name == (*e)()->name) return true;
  return false;
}

// A backend that this test program does not hold; the tests below need one to be refused.
std::string absent() {
  for (const char* name : kBackendOrder)
    if (!built(name)) return name;
  ADD_FAILURE() << "every backend is built in: these tests need another way to be refused";
  return "";
}

TEST(Registry, EveryKnownBackendIsReportedBuiltOrNot) {
  const auto all = discover_backends();
  ASSERT_EQ(all.size(), std::size(kBackendOrder));
  for (size_t i = 0; i < all.size(); i++) {
    EXPECT_EQ(all[i].backend, kBackendOrder[i]);
    EXPECT_EQ(all[i].available, all[i].reason.empty()) << all[i].backend;
    EXPECT_EQ(all[i].available, all[i].message.empty()) << all[i].backend;
    EXPECT_EQ(all[i].available, !all[i].devices.empty()) << all[i].backend;
    if (built(all[i].backend)) continue;
    EXPECT_EQ(all[i].reason, "not-built");
    EXPECT_FALSE(all[i].present);
    mentions(all[i].message, {all[i].backend.c_str()});
    mentions(all[i].remedy, {"GIMBAL_BACKEND_PATH"});
  }
  const BackendReport& cpu = all.back();
  ASSERT_EQ(cpu.backend, "cpu");
  ASSERT_TRUE(cpu.available) << cpu.message;
  EXPECT_EQ(cpu.devices[0].id, "cpu:0");
  EXPECT_GT(cpu.devices[0].kernels, 0u);
  EXPECT_GT(cpu.devices[0].memory_free, 0u);
  EXPECT_FALSE(cpu.devices[0].name.empty());
}

TEST(Registry, UnknownNamesAreUsageErrorsThatListTheKnownOnes) {
  for (const char* name : {"", "CPU", "gpu", "cpu:0", "cpu "}) {
    auto d = open_device({name, 0, false, ""});
    ASSERT_FALSE(d) << name;
    EXPECT_EQ(d.error().code, Code::Usage);
    mentions(d.error().message, {name});
    mentions(d.error().remedy, {"auto", "cuda", "cpu"});
  }
}

TEST(Registry, WhatIsNotBuiltFallsBackWithAReasonOrFailsUnderStrict) {
  const std::string name = absent();
  auto d = open_device({name, 0, false, "", "threads=1"});
  ASSERT_TRUE(d) << d.error().message;
  ASSERT_EQ(d->fallbacks.size(), 1u);
  mentions(d->fallbacks[0].sentence(), {name.c_str(), "built without"});
  mentions(d->reason(), {"next best", name.c_str(), "not in this build"});

  auto strict = open_device({name, 0, true, ""});
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().code, Code::NoBackend);
  mentions(strict.error().message, {name.c_str(), "built without"});
  EXPECT_FALSE(strict.error().changes.empty());
}

TEST(Registry, AutomaticChoiceSaysWhatItPassedOver) {
  auto d = open_device({"auto", 0, false, "threads=1"});
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_TRUE(d->fallbacks.empty()) << "nothing was asked for, so nothing was not had";
  mentions(d->reason(), {"first available", absent().c_str()});
}

TEST(Registry, ADeviceNumberThatIsNotThereIsAnError) {
  for (bool strict : {false, true})
    for (int index : {1, 7, -1, INT32_MAX, INT32_MIN}) {
      auto d = open_device({"cpu", index, strict, ""});
      ASSERT_FALSE(d) << index;
      EXPECT_EQ(d.error().code, Code::NoBackend);
      mentions(d.error().message, {"cpu", std::to_string(index).c_str(), "has 1"});
    }
  // The number belonged to the backend that was asked for, not to what replaces it.
  EXPECT_TRUE(open_device({absent(), 3, false, "words for another backend"}));
}

TEST(Registry, BadOptionsAreNamed) {
  struct Bad {
    const char *options, *word;
  };
  for (const Bad& b : {Bad{"threads=0", "threads"},
                       {"threads=", "threads"},
                       {"threads=2x", "2x"},
                       {"threads=99999999999999999999", "threads"},
                       {"threads", "threads"},
                       {"speed=9", "speed=9"},
                       {"variant=mmx", "mmx"},
                       {"threads=1\nvariant=", "variant"},
                       {"\n", "option"}}) {
    auto d = open_device({"cpu", 0, false, b.options});
    ASSERT_FALSE(d) << b.options;
    mentions(d.error().message, {"cpu", b.word});
  }
  EXPECT_TRUE(open_device({"cpu", 0, true, "threads=2\nvariant=baseline\n"}));
}

TEST(Device, ABackendThatFailsToOpenIsQuoted) {
  test::FakeDevice::settings() = {};
  test::FakeDevice::settings().open_error = "the driver is from last century";
  auto d = Device::open(test::fake_backend(), 0);
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().code, Code::NoBackend);
  mentions(d.error().message, {"fake", "the driver is from last century"});
}

TEST(Device, BufferBoundsAreChecked) {
  auto d = test::open_fake({});
  auto b = d->allocate(100);
  ASSERT_TRUE(b);
  char bytes[200] = {};
  EXPECT_TRUE(d->write(*b, 0, bytes, 100));
  EXPECT_TRUE(d->read(*b, 100, bytes, 0));
  for (auto [offset, n] :
       {std::pair<size_t, size_t>{0, 101}, {1, 100}, {101, 0}, {SIZE_MAX, 2}, {50, SIZE_MAX}}) {
    EXPECT_FALSE(d->write(*b, offset, bytes, n)) << offset << " " << n;
    EXPECT_FALSE(d->read(*b, offset, bytes, n)) << offset << " " << n;
  }
  EXPECT_EQ(d->id(), "fake:0");
  EXPECT_EQ(d->features(), "");
}

// What comes of an exchange: the engine's tests. Here: that a plugin is asked before it is taken.
TEST(Registry, APluginIsTakenOnceItWasAskedAndFoundGood) {
  const test::PluginFolder folder, other;
  BackendPlaces places;
  folder.put("metal", "hardware,device=old");
  places.folders = {folder.path()};
  Registry registry(places);
  auto content = [](const LibraryPtr&, const BackendReport&) -> Status { return Done{}; };
  for (auto [told, code] : {std::pair("crash", "probe-crashed"),
                            {"devices=0,says=asleep/wake it", "no-device"},
                            {"abi=99", ""}}) {
    const auto refused = registry.reload(other.put("metal_bad", std::string("named=metal,") + told), content);
    ASSERT_FALSE(refused) << told;
    if (*code) { EXPECT_STREQ(refused.error().reason, code) << refused.error().message; }
  }
  const std::string good = other.put("metal_good", "named=metal,hardware,device=new");
  const auto unwanted = registry.reload(good, [](const LibraryPtr&, const BackendReport& r) -> Status {
    EXPECT_EQ(r.devices.at(0).name, "new");
    return Error{Code::Failed, "not content", ""};
  });
  ASSERT_FALSE(unwanted);
  EXPECT_EQ(unwanted.error().message, "not content");
  const auto taken = registry.reload(good, content);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_FALSE(taken->draining);
  auto opened = registry.open({"metal", 0, true, ""});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(std::string(opened->device->describe().name), "new");
}

TEST(Registry, ABackendOfSomebodyElseIsShownByItsOwnName) { EXPECT_EQ(display_name("toaster"), "toaster"); }

}  // namespace
}  // namespace gimbal
