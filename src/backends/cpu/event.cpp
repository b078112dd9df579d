#include "backends/cpu/event.h"

#include <chrono>

namespace gimbal::cpu {
namespace {

// Several times as long as the work of one worker between two levels, or as a chunk of a matrix product. Not
// longer: if another program needs the core too, spinning takes time from the next chunk.
constexpr auto kSpin = std::chrono::microseconds(50);
// Between two reads of the clock. A pause takes 10 to 150 cycles, so pauses cannot measure time.
constexpr int kPausesPerLook = 32;

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

// No wake-up is lost: all four accesses below are sequentially consistent, so either set() reads the count
// that sleep_while() has raised, and notifies, or sleep_while() reads the value that set() has stored. They
// include release and acquire, so a reader of the value sees all earlier writes of its setter.
void Event::set(uint32_t value) {
  value_.store(value);
  if (sleepers_.load() > 0) value_.notify_all();
}

void Event::sleep_while(uint32_t old) {
  sleepers_.fetch_add(1);
  while (value_.load() == old) value_.wait(old);
  sleepers_.fetch_sub(1);
}

bool Event::spin_while(uint32_t old) const {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + kSpin;;) {
    for (int i = 0; i < kPausesPerLook; i++) {
      if (value() != old) return true;
      pause_briefly();
    }
    if (Clock::now() >= end) return false;
  }
}

}  // namespace gimbal::cpu
