// The names of devices: written, read, compared, and as keys.
#include "device/location.h"

#include <gtest/gtest.h>

#include <set>
#include <unordered_set>

namespace gimbal {
namespace {

TEST(DeviceLocation, IsReadAsItIsWritten) {
  for (const char* text : {"cuda:0", "cpu:0", "vulkan:12", "my_backend2:2147483647"}) {
    auto l = DeviceLocation::parse(text);
    ASSERT_TRUE(l) << text;
    EXPECT_EQ(l->id(), text);
  }
  EXPECT_EQ(*DeviceLocation::parse("metal"), (DeviceLocation{"metal", 0}));
}

TEST(DeviceLocation, WhatIsNoneIsRefused) {
  for (const char* text : {"", ":", ":0", "cuda:", "cuda:-1", "cuda:x", "cuda:0x1", "cuda:1 ",
                           "cuda:2147483648", "CUDA:0", "cu da:0", "cuda:0:1", "cuda/0"}) {
    auto l = DeviceLocation::parse(text);
    ASSERT_FALSE(l) << text;
    EXPECT_EQ(l.error().code, Code::Usage);
    EXPECT_NE(l.error().message.find("'" + std::string(text) + "'"), std::string::npos) << l.error().message;
    EXPECT_NE(l.error().remedy.find("cuda:0"), std::string::npos);
  }
}

TEST(DeviceLocation, HasAnOrderAndIsAKey) {
  const DeviceLocation a{"cpu", 0}, b{"cuda", 0}, c{"cuda", 1};
  EXPECT_LT(a, b);
  EXPECT_LT(b, c);
  EXPECT_NE(b, c);
  EXPECT_EQ((std::set<DeviceLocation>{c, a, b, a}).size(), 3u);
  EXPECT_EQ((std::unordered_set<DeviceLocation>{c, a, b, a}).size(), 3u);
  EXPECT_EQ(std::hash<DeviceLocation>()(b), std::hash<DeviceLocation>()({"cuda", 0}));
}

}  // namespace
}  // namespace gimbal
