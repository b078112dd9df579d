// Where activations lie: the arithmetic of plan_work() and of the ends of slots. Plain values only: a model
// checker reads this header (proofs/plans.cpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace gimbal {

// Bytes of a slot at most: keeps sums over slots within 64 bits.
inline constexpr uint64_t kMaxSlotBytes = uint64_t(1) << 60;

// The end of a slot behind one more value, a multiple of `alignment`; nullopt: the slot would be too large.
// `end` is at most kMaxSlotBytes.
constexpr std::optional<uint64_t> slot_end(uint64_t end, uint64_t bytes, uint64_t alignment) {
  if (bytes > kMaxSlotBytes - end) return std::nullopt;
  return align_up(end + bytes, alignment);
}

// A value of the slot Work: alive from op `first` to op `last`.
struct Lifetime {
  uint16_t value;
  size_t first, last;  // inclusive
  uint64_t bytes, offset;
};

constexpr bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// The lowest offset at which `next` shares no byte with a value that it meets. nullopt: the slot would be too
// large. `placed`: by rising offset; each ends at kMaxSlotBytes at most.
constexpr std::optional<uint64_t> lowest_free(const Lifetime* const* placed, size_t n, const Lifetime& next) {
  if (next.bytes > kMaxSlotBytes) return std::nullopt;
  uint64_t at = 0;
  for (size_t i = 0; i < n; i++) {
    const Lifetime& other = *placed[i];
    const uint64_t end = other.offset + other.bytes;
    if (meet(next, other) && at < end && other.offset < at + next.bytes) at = end;
  }
  if (at > kMaxSlotBytes - next.bytes) return std::nullopt;
  return at;
}

}  // namespace gimbal
