// Schedules of faults between a front and its workers: each answer is the one that its request has alone. The
// program `simulate` runs as many as one likes; seeds that once failed are here by name.
#include "simulator/simulation.h"

namespace gimbal::test {
namespace {

class Simulator : public testing::Test {
 protected:
  static SimulatedModels& models() {
    static SimulatedModels all;
    return all;
  }
  static const Answers& answers() {
    static const Answers all(models().plain);
    return all;
  }
  static ScheduleResult schedule(uint64_t seed, bool everything = true) {
    const ScheduleResult r = Simulation(seed, models(), answers(), everything).run();
    EXPECT_EQ(r.violation, "") << "simulate --seed " << seed;
    return r;
  }
};

TEST_F(Simulator, EveryAnswerIsTheOneThatItsRequestHasAlone) {
  ScheduleResult all;
  const uint64_t seeds = fewer_cases() ? 60 : 300;
  for (uint64_t seed = 1; seed <= seeds; seed++) all += schedule(seed);
  EXPECT_GT(all.whole, int(seeds) * 3);
  if (fewer_cases()) return;
  EXPECT_GT(all.given_up, 0);
  EXPECT_GT(all.constrained, 0);
  EXPECT_GT(all.accepted, 0u);
  EXPECT_GT(all.drafted, all.accepted);
  for (size_t f = 0; f < all.faults.counts.size(); f++) EXPECT_GT(all.faults.counts[f], 0u) << kFaultNames[f];
  for (size_t t = 0; t < all.troubles.counts.size(); t++)
    EXPECT_GT(all.troubles.counts[t], 0u) << kTroubleNames[t];
  EXPECT_GT(all.stored.pages_written, 0u);
  EXPECT_GT(all.stored.pages_read, 0u);
  EXPECT_GT(all.stored.pages_damaged, 0u);
  EXPECT_GT(all.stored.pages_dropped, 0u);
  EXPECT_GT(all.stored.pages_evicted, 0u);
}

// Schedules that once failed, each with its fault.
TEST_F(Simulator, FoundSeeds) {
  // Requests that ended their workers before these could report it counted as failed starts, so the service
  // ended, and other requests with it.
  schedule(1795647932773382709, false);
  // The log-probability of a stop token was lost on the way, and the answer ended without it.
  schedule(1795777085716536577);
}

TEST_F(Simulator, ASeedIsASchedule) {
  const ScheduleResult one = schedule(12345), again = schedule(12345);
  EXPECT_EQ(one.faults.counts, again.faults.counts);
  EXPECT_EQ(one.steps, again.steps);
  EXPECT_EQ(one.compared, again.compared);
  EXPECT_EQ(one.workers, again.workers);
  EXPECT_EQ(one.troubles.counts, again.troubles.counts);
}

}  // namespace
}  // namespace gimbal::test
