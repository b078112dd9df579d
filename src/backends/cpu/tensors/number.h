// Plain numbers in memory: reading them into the format of the arithmetic, and rounding results once into the
// stored format.
#pragma once

// Values and bytes of a block. Not gimbal::info(): its table would be one object of all instruction sets.
struct BlockSize {
  int values, bytes;
};
constexpr BlockSize block_of(DType t) {
  switch (t) {
#define GIMBAL_DTYPE(number, id, name, block, bytes, ...) \
  case DType::id:                                         \
    return {block, bytes};
#include "tensor/dtypes.def"
#undef GIMBAL_DTYPE
  }
  return {1, 1};
}

// Small floats of one byte ("FP8 Formats for Deep Learning", Micikevicius and others, 2022): Mantissa bits
// behind the exponent; e4m3 has no infinities, and one NaN.
template <int Mantissa, bool Infinities>
inline float small_to_float(uint8_t code) {
  constexpr int kBias = Infinities ? 15 : 7;
  const uint32_t sign = uint32_t(code & 0x80) << 24, size = code & 0x7f;
  const uint32_t exponent = size >> Mantissa, fraction = size & ((1u << Mantissa) - 1);
  uint32_t bits;
  if (exponent == 0) {
    bits = __builtin_bit_cast(
        uint32_t, float(fraction) * __builtin_bit_cast(float, uint32_t(128 - kBias - Mantissa) << 23));
  } else if (Infinities ? exponent == 31 : size == 0x7f) {
    bits = Infinities && fraction == 0 ? 0x7f800000u : 0x7fc00000u;
  } else {
    bits = (exponent + 127 - kBias) << 23 | fraction << (23 - Mantissa);
  }
  return __builtin_bit_cast(float, sign | bits);
}
template <int Mantissa, bool Infinities>
inline uint8_t float_to_small(float value) {
  constexpr int kBias = Infinities ? 15 : 7, kShift = 23 - Mantissa;
  constexpr uint32_t kTooLarge = Infinities ? 0x7c : 0x7f;  // infinity, or NaN
  const uint32_t bits = __builtin_bit_cast(uint32_t, value), sign = bits >> 24 & 0x80,
                 size = bits & 0x7fffffff;
  if (size > 0x7f800000) return uint8_t(sign | 0x7f);
  if (size >= uint32_t(128 - kBias) << 23) {  // normal; the carry of the rounding runs into the exponent
    const uint32_t rounded = (size + (1u << (kShift - 1)) - 1 + (size >> kShift & 1)) >> kShift;
    const uint32_t code = rounded - (uint32_t(127 - kBias) << Mantissa);
    return uint8_t(sign | (code < kTooLarge ? code : kTooLarge));
  }
  // Subnormal: a multiple of 2^(1 - bias - Mantissa). Adding 1.5 * 2^23 of these units rounds to even.
  const float unit = __builtin_bit_cast(float, uint32_t(128 - kBias - Mantissa) << 23),
              magic = 12582912.0f * unit;
  const float sum = __builtin_bit_cast(float, size) + magic;
  return uint8_t(sign | (__builtin_bit_cast(uint32_t, sum) & 0xff));
}

// Rounding to odd: a later rounding to fewer bits gives what one rounding of the exact value would (Boldo and
// Melquiond, 2008).
inline float odd_float(double v) {
  const float f = float(v);
  if (double(f) == v || v != v) return f;
  uint32_t bits = __builtin_bit_cast(uint32_t, f);
  if (__builtin_fabs(double(f)) > __builtin_fabs(v)) bits--;  // towards zero
  return __builtin_bit_cast(float, bits | 1);
}
inline double odd_double(uint64_t size, bool negative) {
  const int extra = size >> 53 ? 11 - __builtin_clzll(size) : 0;
  const uint64_t kept = size >> extra, lost = size & ((uint64_t(1) << extra) - 1);
  const double v = double(int64_t(kept | (lost != 0))) * double(uint64_t(1) << extra);
  return negative ? -v : v;
}
inline double odd_double(int64_t v) { return odd_double(v < 0 ? 0 - uint64_t(v) : uint64_t(v), v < 0); }
inline double odd_double(uint64_t v) { return odd_double(v, false); }

// Stored types: plain C types, and those that share one of them.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};
struct Small43 {
  uint8_t bits;
};
struct Small52 {
  uint8_t bits;
};
struct Truth {
  uint8_t bits;
};

// From the stored type to the type of the arithmetic, exactly.
template <class C, class T>
inline C value_of(T v) {
  if constexpr (__is_same(T, Half)) return C(half_to_float(v.bits));
  else if constexpr (__is_same(T, Brain)) return C(bf16_to_float(v.bits));
  else if constexpr (__is_same(T, Small43)) return C(small_to_float<3, false>(v.bits));
  else if constexpr (__is_same(T, Small52)) return C(small_to_float<2, true>(v.bits));
  else if constexpr (__is_same(T, Truth)) return C(v.bits != 0);
  else return C(v);
}

template <class C>
constexpr bool is_floating = __is_same(C, float) || __is_same(C, double);

// Truncated, within the range; a NaN gives 0.
template <class T, class C>
inline T truncated(C v) {
  constexpr bool kSigned = T(-1) < T(0);
  constexpr int kBits = int(sizeof(T)) * 8 - kSigned;
  constexpr C kEnd = C(uint64_t(1) << (kBits - 1)) * C(2);
  constexpr T kMost = T(~T(0)) < T(0) ? T((uint64_t(1) << kBits) - 1) : T(~T(0));
  if (!(v == v)) return 0;
  if (v >= kEnd) return kMost;
  if constexpr (kSigned) {
    if (v < -kEnd) return T(-kMost - 1);
    return T(v);
  } else {
    return v <= C(-1) ? T(0) : T(v);
  }
}

// From the type of the arithmetic to the stored type, rounded once.
template <class T, class C>
inline T stored(C v) {
  if constexpr (__is_same(T, Truth)) return {uint8_t(v != C(0))};
  else if constexpr (__is_same(T, Half) || __is_same(T, Brain) || __is_same(T, Small43) ||
                     __is_same(T, Small52)) {
    float f;
    if constexpr (__is_same(C, float)) f = v;
    else if constexpr (__is_same(C, double)) f = odd_float(v);
    else f = odd_float(odd_double(v));
    if constexpr (__is_same(T, Half)) return {float_to_half(f)};
    else if constexpr (__is_same(T, Brain)) return {float_to_bf16(f)};
    else if constexpr (__is_same(T, Small43)) return {float_to_small<3, false>(f)};
    else return {float_to_small<2, true>(f)};
  } else if constexpr (is_floating<C> && !is_floating<T>) {
    return truncated<T>(v);
  } else {
    return T(v);
  }
}

// Calls f with a null pointer of the stored type of a plain number format.
template <class F>
inline void with_type(DType t, F f) {
  switch (t) {
    case DType::F32: return f(static_cast<float*>(nullptr));
    case DType::F16: return f(static_cast<Half*>(nullptr));
    case DType::BF16: return f(static_cast<Brain*>(nullptr));
    case DType::F64: return f(static_cast<double*>(nullptr));
    case DType::F8_E4M3: return f(static_cast<Small43*>(nullptr));
    case DType::F8_E5M2: return f(static_cast<Small52*>(nullptr));
    case DType::Bool: return f(static_cast<Truth*>(nullptr));
    case DType::U8: return f(static_cast<uint8_t*>(nullptr));
    case DType::I8: return f(static_cast<int8_t*>(nullptr));
    case DType::U16: return f(static_cast<uint16_t*>(nullptr));
    case DType::I16: return f(static_cast<int16_t*>(nullptr));
    case DType::U32: return f(static_cast<uint32_t*>(nullptr));
    case DType::I32: return f(static_cast<int32_t*>(nullptr));
    case DType::U64: return f(static_cast<uint64_t*>(nullptr));
    case DType::I64: return f(static_cast<int64_t*>(nullptr));
    default: return;
  }
}
// The same, of the formats that arithmetic in C takes, and no others: less code.
template <class C, class F>
inline void with_type_of(DType t, F f) {
  if constexpr (__is_same(C, double)) {
    f(static_cast<double*>(nullptr));
  } else if constexpr (__is_same(C, float)) {
    if (t == DType::F16) f(static_cast<Half*>(nullptr));
    else if (t == DType::BF16) f(static_cast<Brain*>(nullptr));
    else f(static_cast<float*>(nullptr));
  } else {
    switch (t) {
      case DType::Bool: return f(static_cast<Truth*>(nullptr));
      case DType::U8: return f(static_cast<uint8_t*>(nullptr));
      case DType::I16: return f(static_cast<int16_t*>(nullptr));
      case DType::I32: return f(static_cast<int32_t*>(nullptr));
      case DType::U32: return f(static_cast<uint32_t*>(nullptr));
      default: return f(static_cast<int64_t*>(nullptr));
    }
  }
}
