// Workers that take memory at the same time: what fits one by one and not together is refused.
#include "workers/memory_reservations.h"

#include <gtest/gtest.h>

#include "support/cli.h"

namespace gimbal {
namespace {

using test::contains;

constexpr uint64_t kGB = 1'000'000'000;

Status together(std::vector<wire::Planned> all) { return fit_together(all); }

TEST(Together, EachMayFitAndBothNot) {
  const wire::Planned one{{{"cuda:0", 5 * kGB, 4 * kGB, 0, 8 * kGB}, {"", 1 * kGB, 0, 0, 20 * kGB}}};
  EXPECT_TRUE(together({one}));
  auto both = together({one, one});
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, Code::OutOfMemory);
  EXPECT_SAYS(both.error().message, "cuda:0 for 2 workers together");
  EXPECT_SAYS(both.error().message,
              "5.00 GB (weights 4.00 GB) each, which is 10.0 GB in all, and 8.00 GB are free");
  EXPECT_SAYS(both.error().remedy, "one worker");
  EXPECT_FALSE(contains(both.error().remedy, "gimbal pack"));  // a card does not map files
  wire::Planned fits = one;
  fits.needs[0].free = 10 * kGB;
  EXPECT_TRUE(together({fits, fits}));
  // Who looked later saw what others had taken meanwhile.
  EXPECT_FALSE(together({fits, one}));
  EXPECT_FALSE(together({one, fits}));
  wire::Planned elsewhere = one;
  elsewhere.needs[0].device = "cuda:1";
  EXPECT_TRUE(together({one, elsewhere}));
}

// Two devices of different kinds can be parts of the host's memory.
TEST(Together, TheHostsMemoryIsOne) {
  const wire::Planned a{{{"cpu:0", 5 * kGB, 5 * kGB, 0, 9 * kGB}, {"", 5 * kGB, 5 * kGB, 0, 9 * kGB}}};
  const wire::Planned b{{{"vulkan:0", 5 * kGB, 5 * kGB, 0, 9 * kGB}, {"", 5 * kGB, 5 * kGB, 0, 9 * kGB}}};
  auto both = together({a, b});
  ASSERT_FALSE(both);
  EXPECT_SAYS(both.error().message, "this machine");
  EXPECT_SAYS(both.error().remedy, "gimbal pack");
}

TEST(Together, WhatIsSharedCountsOnce) {
  const wire::Planned one{{{"cpu:0", 5 * kGB, 4 * kGB, 4 * kGB, 6 * kGB}}};
  EXPECT_TRUE(together({one, one}));
  auto three = together({one, one, one});
  ASSERT_FALSE(three);
  EXPECT_SAYS(three.error().message, "counted once");
  EXPECT_FALSE(contains(three.error().remedy, "gimbal pack"));
}

TEST(Together, NumbersThatCannotBeAreNoWayIn) {
  const wire::Planned huge{{{"cpu:0", UINT64_MAX, UINT64_MAX, 0, UINT64_MAX}}};
  EXPECT_FALSE(together({huge, huge}));
  const wire::Planned lies{{{"cpu:0", 5 * kGB, 1, UINT64_MAX, 6 * kGB}}};
  EXPECT_FALSE(together({lies, lies}));
}

}  // namespace
}  // namespace gimbal
