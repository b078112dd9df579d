// What plain numbers can be: rounding to each format once, from the exact value. Written from the formats'
// definitions and slow on purpose; kernels are compared with it.
#pragma once
#include <cstdint>

#include "tensor/dtype.h"

namespace gimbal {

// A format of floats: `digits` bits of a number, exponents from `least` on (of subnormals), up to `largest`.
struct FloatFormat {
  int digits, least;
  double largest;
  bool infinities = true;
};
FloatFormat float_format(DType);

constexpr bool is_float_format(DType t) {
  return has(kFloats, t) || t == DType::F8_E4M3 || t == DType::F8_E5M2;
}
// Of i64, u64 and the formats within them; bool is one without sign.
constexpr bool is_signed(DType t) {
  return t == DType::I8 || t == DType::I16 || t == DType::I32 || t == DType::I64;
}

// To the nearest number of a float format, ties to even; beyond the largest one infinity, or NaN.
double rounded(DType, double v);
// The same of an integer; `is_unsigned`: 64 bits without a sign.
double rounded(DType, int64_t v, bool is_unsigned);
// The distance of two neighbours around v.
double unit_around(DType, double v);

// The low bits of an integer as a number of an integer format; of u64 its bits. Bool: whether it is not 0.
int64_t wrapped(DType, int64_t v);
// Without its fraction, within the range of an integer format; NaN gives 0. Bool: whether it is not 0.
int64_t truncated(DType, double v);

// One number of a format of 8 bits: "FP8 Formats for Deep Learning" (Micikevicius and others, 2022).
double small_float(DType, uint8_t code);

}  // namespace gimbal
