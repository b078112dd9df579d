#include "backends/cpu/signal.h"

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

void Signal::raise() {
  value_.fetch_add(1);
  if (sleepers_.load() > 0) value_.notify_all();
}

bool Signal::spin_while(uint32_t from) const {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + kSpin;;) {
    for (int i = 0; i < kPausesPerLook; i++) {
      if (value() != from) return true;
      pause_briefly();
    }
    if (Clock::now() >= end) return false;
  }
}

void Signal::sleep_while(uint32_t from) {
  // A raise() either sees this count, and wakes us, or its new value is seen by the wait.
  sleepers_.fetch_add(1);
  while (value_.load() == from) value_.wait(from);
  sleepers_.fetch_sub(1);
}

}  // namespace gimbal::cpu
