// The threads that compute together: every member runs every job once, nobody passes a barrier early, and an
// idle team costs nothing.
#include "backends/cpu/team.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>

namespace gimbal::cpu {
namespace {

TEST(Team, EveryMemberRunsEveryJobOnce) {
  for (int threads = 1; threads <= 8; threads++) {
    Team team(threads);
    EXPECT_EQ(team.size(), threads);
    std::vector<int> ran(size_t(threads), 0);
    const std::thread::id caller = std::this_thread::get_id();
    bool first_is_caller = true;
    const int rounds = threads > 2 ? 500 : 4000;  // more threads than cores take their time
    for (int round = 0; round < rounds; round++) {
      team.run([&](int member) {
        ran[size_t(member)]++;  // not atomic on purpose: run() must order this before its return
        if (member == 0) first_is_caller &= std::this_thread::get_id() == caller;
      });
      for (int n : ran) ASSERT_EQ(n, round + 1) << threads << " threads";
    }
    EXPECT_TRUE(first_is_caller);
  }
}

TEST(Team, NobodyPassesABarrierBeforeAllAreThere) {
  for (int threads = 1; threads <= 8; threads++) {
    Team team(threads);
    const int rounds = threads > 2 ? 400 : 5000;
    std::vector<int> at(size_t(threads), 0);  // plain integers: the barrier itself must order them
    std::atomic<int> early{0};
    for (int jobs = 0; jobs < 2; jobs++)
      team.run([&](int member) {
        for (int round = 0; round < rounds; round++) {
          at[size_t(member)]++;
          team.barrier();
          for (int n : at) early += n != at[size_t(member)];
          team.barrier();
        }
      });
    EXPECT_EQ(early, 0) << threads << " threads";
    for (int n : at) EXPECT_EQ(n, 2 * rounds);
  }
}

TEST(Team, TheLastToArriveWorksWhileTheOthersWait) {
  for (int threads = 1; threads <= 8; threads++) {
    Team team(threads);
    const int rounds = threads > 2 ? 400 : 5000;
    int alone = 0;  // plain on purpose, as is what members do with it
    std::vector<int> seen(size_t(threads), 0);
    team.run([&](int member) {
      for (int round = 0; round < rounds; round++) {
        if (team.last_to_arrive()) {
          alone++;
          team.release();
        }
        seen[size_t(member)] += alone == round + 1;
        team.barrier();
      }
    });
    EXPECT_EQ(alone, rounds) << threads << " threads";
    for (int n : seen) EXPECT_EQ(n, rounds) << threads << " threads";
  }
}

TEST(Team, MembersThatCameLongBeforeAreWokenFromSleep) {
  Team team(4);
  std::atomic<int> sum{0};
  for (int round = 0; round < 20; round++)
    team.run([&](int member) {
      // Long past the spinning; another member is late each time.
      if (member == round % 4) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      team.barrier();
      sum += member;
    });
  EXPECT_EQ(sum, 20 * 6);
}

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

TEST(Team, IdleThreadsSleep) {
  Team team(8);
  std::atomic<int> ran{0};
  team.run([&](int) { ran++; });
  // The process's own CPU time, so that a busy machine does not matter.
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(cpu_seconds() - before, 0.05);
  team.run([&](int) { ran++; });
  EXPECT_EQ(ran, 16);
}

TEST(Team, CanBeDestroyedAtAnyTime) {
  for (int i = 0; i < 200; i++) {
    Team never_ran(8);
    Team ran(1 + i % 8);
    if (i % 2) ran.run([](int) {});
  }
}

}  // namespace
}  // namespace gimbal::cpu
