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

// One rounding of the arithmetic in f32; running errors (running_error.h) are of first order, so a thousandth
// more. None of f64: there a reference in the order of the op has the same bits. None of integers.
inline double one_rounding(std::span<const Shape> in) {
  const DType t = in[0].type;
  return t == DType::F64 || has(kNumbers & ~kFloats, t) ? 0 : 1.001 * kRounding;
}

// Custom ops: their kernels come with a program, which also defines their meaning.
inline std::vector<Case> no_cases(DType) { return {}; }
inline constexpr OpCheck kUnchecked = {.tolerance = roundings<0>, .cases = no_cases};

}  // namespace gimbal::ops
