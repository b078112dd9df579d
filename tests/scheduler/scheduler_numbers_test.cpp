// Sums of the numbers of several schedulers, some of which lie: workers are not trusted.
#include "scheduler/numbers.h"

#include <gtest/gtest.h>

#include <climits>

namespace gimbal {
namespace {

constexpr int SchedulerNumbers::*kNow[] = {&SchedulerNumbers::running,    &SchedulerNumbers::waiting,
                                           &SchedulerNumbers::pages,      &SchedulerNumbers::pages_running,
                                           &SchedulerNumbers::pages_kept, &SchedulerNumbers::pages_shared};
constexpr uint64_t SchedulerNumbers::*kEver[] = {
    &SchedulerNumbers::requests,      &SchedulerNumbers::tokens_generated,
    &SchedulerNumbers::prompt_tokens, &SchedulerNumbers::shared_tokens,
    &SchedulerNumbers::steps,         &SchedulerNumbers::rows,
    &SchedulerNumbers::preemptions,   &SchedulerNumbers::devices_lost};

TEST(SchedulerNumbers, EachIsAddedToItself) {
  SchedulerNumbers a, b;
  int n = 1;
  for (auto m : kNow) a.*m = n, b.*m = 100 * n, n++;
  for (auto m : kEver) a.*m = uint64_t(n), b.*m = uint64_t(100 * n), n++;
  a.first_token.add(0.003), b.first_token.add(0.003), b.between_tokens.add(100);
  a += b;
  n = 1;
  for (auto m : kNow) EXPECT_EQ(a.*m, 101 * n++);
  for (auto m : kEver) EXPECT_EQ(a.*m, uint64_t(101 * n++));
  EXPECT_EQ(a.first_token.counts[2], 2u);
  EXPECT_DOUBLE_EQ(a.first_token.sum, 0.006);
  EXPECT_EQ(a.between_tokens.counts.back(), 1u);
}

TEST(SchedulerNumbers, ASumOfLiesIsTheLargestInt) {
  SchedulerNumbers a, b;
  for (auto m : kNow) a.*m = INT_MAX, b.*m = INT_MAX;
  a += b;
  for (auto m : kNow) EXPECT_EQ(a.*m, INT_MAX);
  for (auto m : kNow) a.*m = INT_MIN, b.*m = -1;
  a += b;
  for (auto m : kNow) EXPECT_EQ(a.*m, INT_MIN);
}

// A bound belongs to the count below it; longer ones are counted last.
TEST(SchedulerNumbers, DurationsAreCountedAtTheirBounds) {
  for (size_t i = 0; i < Durations::kBounds.size(); i++) {
    Durations d;
    d.add(Durations::kBounds[i]);
    EXPECT_EQ(d.counts[i], 1u) << i;
    d.add(Durations::kBounds[i] * 1.0001);
    EXPECT_EQ(d.counts[i + 1], 1u) << i;
  }
}

TEST(SchedulerNumbers, AnEndedSchedulerKeepsItsCountersAlone) {
  SchedulerNumbers a;
  for (auto m : kNow) a.*m = 5;
  for (auto m : kEver) a.*m = 7;
  const SchedulerNumbers past = a.past();
  for (auto m : kNow) EXPECT_EQ(past.*m, 0);
  for (auto m : kEver) EXPECT_EQ(past.*m, 7u);
}

}  // namespace
}  // namespace gimbal
