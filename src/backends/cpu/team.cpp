#include "backends/cpu/team.h"

#include <chrono>

namespace gimbal::cpu {
namespace {

// Several times what one thread does alone between two phases, and what a share of a matmul takes. No longer:
// where another program wants the core too, time spent spinning is taken from the next share.
constexpr auto kSpin = std::chrono::microseconds(50);
constexpr int kPausesPerLook =
    32;  // at the clock; a pause takes 10 to 150 cycles, so it cannot tell the time

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

void Team::Signal::raise() {
  value.fetch_add(1);
  if (sleepers.load() > 0) value.notify_all();
}

void Team::Signal::await_change(uint32_t from, bool spin) {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + (spin ? kSpin : Clock::duration(0));;) {
    for (int i = 0; i < kPausesPerLook; i++) {
      if (value.load(std::memory_order_acquire) != from) return;
      pause_briefly();
    }
    if (Clock::now() >= end) break;
  }
  // A raise() either sees this count, and wakes us, or its new value is seen by the wait.
  sleepers.fetch_add(1);
  while (value.load() == from) value.wait(from);
  sleepers.fetch_sub(1);
}

// With fewer cores than members, spinning would keep the others from what is waited for.
Team::Team(int threads)
    : threads_(threads), spin_(unsigned(threads) <= std::thread::hardware_concurrency()) {}

Team::~Team() {
  quit_ = true;
  start_.raise();
  for (std::thread& w : workers_) w.join();
}

void Team::member(int index) {
  for (uint32_t seen = 0;;) {
    start_.await_change(seen, spin_);
    seen++;
    if (quit_) return;
    (*job_)(index);
    barrier();
  }
}

void Team::run(const std::function<void(int)>& job) {
  for (int i = int(workers_.size()) + 1; i < threads_; i++) workers_.emplace_back(&Team::member, this, i);
  if (threads_ == 1) return job(0);
  job_ = &job;
  start_.raise();
  job(0);
  barrier();
}

bool Team::last_to_arrive() {
  const uint32_t round = meet_.value.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);  // nobody looks before release()
    return true;
  }
  meet_.await_change(round, spin_);
  return false;
}

}  // namespace gimbal::cpu
