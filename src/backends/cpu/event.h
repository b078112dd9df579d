// An integer set by one thread and awaited by others, with a spin before a sleep: while tokens are computed
// the wait is short, but an idle program must not occupy a core.
#pragma once
#include <atomic>
#include <cstdint>

namespace gimbal::cpu {

// On a cache line of its own: other writes must not disturb a spinning thread.
class alignas(64) Event {
 public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }
  // Release: a thread that reads this value sees all earlier writes of the caller. One thread at a time.
  void set(uint32_t value);
  // Spins for a few microseconds at most; returns true as soon as the value differs from `old`.
  bool spin_while(uint32_t old) const;
  // Returns once the value differs from `old`.
  void sleep_while(uint32_t old);

 private:
  std::atomic<uint32_t> value_{0};
  std::atomic<int> sleepers_{0};
};

}  // namespace gimbal::cpu
