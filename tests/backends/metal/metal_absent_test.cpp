// The metal backend where there is no Metal: it is there, has no device, and says why. On Apple's systems
// there is nothing to test here.
#include <gtest/gtest.h>

#include <cstdio>

#include "discovery/registry.h"

namespace gimbal {
namespace {

const BackendReport* metal(const std::vector<BackendReport>& all) {
  for (const BackendReport& r : all)
    if (r.backend == "metal") return &r;
  return nullptr;
}

TEST(MetalAbsent, SaysWhy) {
  const auto all = discover_backends();
  const BackendReport* r = metal(all);
  ASSERT_NE(r, nullptr);
  if (r->available) GTEST_SKIP() << "this machine has Metal";
  std::printf("%s: %s (%s)\n", r->reason.c_str(), r->message.c_str(), r->remedy.c_str());
  EXPECT_EQ(r->reason, "library-missing");
  EXPECT_NE(r->message.find("Metal is part of macOS and iOS: this is "), std::string::npos) << r->message;
  EXPECT_EQ(r->remedy, "use another backend here");
}

TEST(MetalAbsent, IsRefusedOrReplacedWithTheReason) {
  const auto all = discover_backends();
  if (metal(all)->available) GTEST_SKIP() << "this machine has Metal";
  auto strict = open_device({"metal", 0, true, ""});
  ASSERT_FALSE(strict);
  EXPECT_NE(strict.error().message.find("Metal is part of macOS"), std::string::npos)
      << strict.error().message;
  EXPECT_STREQ(strict.error().reason, "library-missing");
  auto fallback = open_device({"metal", 0, false, ""});
  ASSERT_TRUE(fallback);
  EXPECT_STRNE(fallback->device->backend(), "metal");
  ASSERT_FALSE(fallback->fallbacks.empty());
  EXPECT_NE(fallback->fallbacks[0].sentence().find("Metal is part of macOS"), std::string::npos)
      << fallback->fallbacks[0].sentence();
}

}  // namespace
}  // namespace gimbal
