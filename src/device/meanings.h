// Hashes of this program's op and format numbers (ops.def, dtypes.def), for comparison between plugin and
// host.
#pragma once
#include "device/abi.h"
#include "ops/op.h"
#include "tensor/dtype.h"

namespace gimbal {

template <int n>
struct Meanings {
  uint64_t of[n];
};
inline constexpr Meanings<kOpNumbers> kOpMeanings = [] {
  Meanings<kOpNumbers> m{};
  for (OpKind k : kAllOps) m.of[int(k)] = meaning(k);
  return m;
}();
inline constexpr Meanings<kDTypeNumbers> kDTypeMeanings = [] {
  Meanings<kDTypeNumbers> m{};
  for (DType t : kAllDTypes) m.of[int(t)] = meaning(t);
  return m;
}();

// Detects a number used twice, which would confuse two ops or formats.
template <int n>
constexpr int count_of(const Meanings<n>& m) {
  int used = 0;
  for (uint64_t hash : m.of) used += hash != 0;
  return used;
}
static_assert(count_of(kOpMeanings) == sizeof kAllOps / sizeof *kAllOps, "a number of ops.def is used twice");
static_assert(count_of(kDTypeMeanings) == sizeof kAllDTypes / sizeof *kAllDTypes,
              "a number of dtypes.def is used twice");

inline constexpr gimbal_meanings kOpMeaningsHere{kOpMeanings.of, kOpNumbers};
inline constexpr gimbal_meanings kDTypeMeaningsHere{kDTypeMeanings.of, kDTypeNumbers};

}  // namespace gimbal
