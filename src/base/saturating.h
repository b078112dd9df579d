// Sums and differences that stop at a limit instead of wrapping around. Plain values only: a model checker
// reads this header (proofs/).
#pragma once
#include <cstdint>
#include <limits>

namespace gimbal {

// a - b; 0 if b is larger.
constexpr uint64_t difference_or_zero(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

// a + b; at most `most`. `a` must not exceed `most`.
constexpr uint64_t sum_up_to(uint64_t most, uint64_t a, uint64_t b) { return b < most - a ? a + b : most; }

// a + b; the nearest int if that is none.
constexpr int saturating_sum(int a, int b) {
  const int64_t sum = int64_t(a) + b;
  if (sum > std::numeric_limits<int>::max()) return std::numeric_limits<int>::max();
  if (sum < std::numeric_limits<int>::min()) return std::numeric_limits<int>::min();
  return int(sum);
}

}  // namespace gimbal
