// A number that goes up, waited for with a spin before a sleep: what threads that compute together wait for
// comes soon while tokens are computed, but an idle program must not burn a core.
#pragma once
#include <atomic>
#include <cstdint>

namespace gimbal::cpu {

// On a cache line of its own: who spins on it must not be disturbed by writes to something else.
class alignas(64) Signal {
 public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }
  void raise();
  // Looks at it for some microseconds; true as soon as it is not `from`.
  bool spin_while(uint32_t from) const;
  // Returns when it is not `from`.
  void sleep_while(uint32_t from);

 private:
  std::atomic<uint32_t> value_{0};
  std::atomic<int> sleepers_{0};
};

}  // namespace gimbal::cpu
