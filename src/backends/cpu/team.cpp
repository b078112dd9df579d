#include "backends/cpu/team.h"

namespace gimbal::cpu {
namespace {

constexpr int kSpins = 2000;  // some tens of microseconds

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

void Team::Signal::await_change(uint32_t from) {
  for (int i = 0; i < kSpins; i++) {
    if (value.load(std::memory_order_acquire) != from) return;
    pause_briefly();
  }
  // A raise() either sees this count, and wakes us, or its new value is seen by the wait.
  sleepers.fetch_add(1);
  while (value.load() == from) value.wait(from);
  sleepers.fetch_sub(1);
}

Team::~Team() {
  quit_ = true;
  start_.raise();
  for (std::thread& w : workers_) w.join();
}

void Team::member(int index) {
  for (uint32_t seen = 0;;) {
    start_.await_change(seen);
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

void Team::barrier() {
  if (threads_ == 1) return;
  const uint32_t round = meet_.value.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1) + 1 == threads_) {
    arrived_.store(0);
    meet_.raise();
  } else {
    meet_.await_change(round);
  }
}

}  // namespace gimbal::cpu
