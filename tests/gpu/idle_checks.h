// A thread that waits for a device sleeps, and leaves its processor to others. Included like counts_checks.h,
// by tests of devices that compute in other threads.
#pragma once
#include "gpu/watched_runtime.h"

namespace gimbal::test {
namespace {

TEST_F(EngineCounts, TheHostSleepsWhileTheDeviceComputes) {
  auto l = load("", 512);
  ASSERT_TRUE(l) << l.error().message;
  auto session = *Session::create(*l->model);
  const std::vector<int32_t> prompt(480, 7);
  ASSERT_TRUE(session->advance(prompt, Session::Wanted::Last, kIgnore));
  std::printf("waited %.3f s, of which %.3f s computing\n", watching->waited, watching->busy);
  ASSERT_GT(watching->waited, 0.01) << "too short to show anything";
  EXPECT_LT(watching->busy, 0.1 * watching->waited);
}

}  // namespace
}  // namespace gimbal::test
