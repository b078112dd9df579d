// A number that one thread sets and others wait for, with a spin before a sleep: what threads that compute
// together wait for comes soon while tokens are computed, but an idle program must not burn a core.
#pragma once
#include <atomic>
#include <cstdint>

namespace gimbal::cpu {

// On a cache line of its own: writes to something else must not disturb a thread that spins on it.
class alignas(64) Event {
 public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }
  // Whoever reads this value sees all that the caller did before. Not from two threads at once.
  void set(uint32_t value);
  // Spins for some microseconds at most; true as soon as the value is another than `old`.
  bool spin_while(uint32_t old) const;
  // Returns when the value is another than `old`.
  void sleep_while(uint32_t old);

 private:
  std::atomic<uint32_t> value_{0};
  std::atomic<int> sleepers_{0};
};

}  // namespace gimbal::cpu
