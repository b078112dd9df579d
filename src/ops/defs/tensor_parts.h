// Shared by the ops of the tensor library: rules of shapes over plain numbers of any format.
#pragma once
#include "ops/defs/parts.h"

namespace gimbal::ops {

inline bool same_dims(const Shape& a, const Shape& b) {
  return a.rank == b.rank && std::equal(a.dim, a.dim + kMaxRank, b.dim);
}
inline bool is_ids(const Shape& s) { return has(kIntegers, s.type); }
// One dim less: the dims from `first` on.
inline Shape without_first(const Shape& s, int n) {
  Shape to;
  to.type = s.type, to.rank = s.rank - n;
  for (int i = n; i < s.rank; i++) to.dim[i - n] = s.dim[i];
  return to;
}
// Whether the dims agree, but for dim `at`.
inline bool same_but(const Shape& a, const Shape& b, int64_t at) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; i++)
    if (i != at && a.dim[i] != b.dim[i]) return false;
  return true;
}

// Ops whose kernels golden_tensors_test checks: they have no cases of their own yet.
inline std::vector<Case> no_cases(DType) { return {}; }
inline constexpr OpCheck kUnchecked = {.tolerance = roundings<0>, .cases = no_cases};

}  // namespace gimbal::ops
