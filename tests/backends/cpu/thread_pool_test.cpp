// The threads that compute together: every worker runs every job once, none is forgotten, and an idle pool
// costs nothing.
#include "backends/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <thread>

namespace gimbal::cpu {
namespace {

TEST(ThreadPool, EveryWorkerRunsEveryJobOnce) {
  for (int threads = 1; threads <= 8; threads++) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    std::vector<int> ran(size_t(threads), 0);
    const std::thread::id caller = std::this_thread::get_id();
    bool first_is_caller = true;
    const int rounds = threads > 2 ? 500 : 4000;  // more threads than cores take their time
    for (int round = 0; round < rounds; round++) {
      pool.run([&](int worker) {
        ran[size_t(worker)]++;  // not atomic on purpose: run() must order this before its return
        if (worker == 0) first_is_caller &= std::this_thread::get_id() == caller;
      });
      for (int n : ran) ASSERT_EQ(n, round + 1) << threads << " threads";
    }
    EXPECT_TRUE(first_is_caller);
  }
}

// The threads of this process, as the system counts them.
int threads_of_process() {
  int n = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) n += !task.path().empty();
  return n;
}

TEST(ThreadPool, HasAsManyThreadsAsTheSystemCounts) {
  const int before = threads_of_process();
  for (int threads : {1, 2, 5}) {
    {
      ThreadPool pool(threads);
      EXPECT_EQ(threads_of_process(), before) << "none is started before there is work";
      pool.run([](int) {});
      EXPECT_EQ(threads_of_process(), before + threads - 1) << "the caller is one of " << threads;
      pool.run([](int) {});
      EXPECT_EQ(threads_of_process(), before + threads - 1) << "the second job starts none";
    }
    // A joined thread may be listed for a moment.
    for (int tries = 0; tries < 5000 && threads_of_process() != before; tries++)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(threads_of_process(), before) << "all have ended";
  }
}

TEST(ThreadPool, WaitsForTheSlowestLongAfterItWentToSleep) {
  ThreadPool pool(4);
  std::vector<int> done(4, 0);
  for (int round = 0; round < 20; round++) {
    pool.run([&](int worker) {
      // Long past the spinning; another member is late each time.
      if (worker == round % 4) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      done[size_t(worker)]++;
    });
    for (int n : done) ASSERT_EQ(n, round + 1);
  }
}

TEST(Event, WakesThreadsThatSleepAndThreadsThatSpin) {
  Event event;
  std::atomic<int> seen{0};
  std::vector<std::thread> threads;
  constexpr uint32_t kRounds = 200;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      for (uint32_t round = 0; round < kRounds; round++) {
        if (t % 2 == 0 || !event.spin_while(round)) event.sleep_while(round);
        seen++;
      }
    });
  for (uint32_t round = 0; round < kRounds; round++) {
    while (seen < int(4 * round)) std::this_thread::yield();
    if (round % 2) std::this_thread::sleep_for(std::chrono::microseconds(300));  // so that all sleep
    EXPECT_EQ(event.value(), round);
    event.set(round + 1);
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(seen, int(4 * kRounds));
}

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

TEST(ThreadPool, IdleThreadsSleep) {
  ThreadPool pool(8);
  std::atomic<int> ran{0};
  pool.run([&](int) { ran++; });
  // The process's own CPU time, so that a busy machine does not matter.
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(cpu_seconds() - before, 0.05);
  pool.run([&](int) { ran++; });
  EXPECT_EQ(ran, 16);
}

TEST(ThreadPool, CanBeDestroyedAtAnyTime) {
  for (int i = 0; i < 200; i++) {
    ThreadPool never_ran(8);
    ThreadPool ran(1 + i % 8);
    if (i % 2) ran.run([](int) {});
  }
}

}  // namespace
}  // namespace gimbal::cpu
