// Conversions between f16, bf16 and f32 without library calls, shared by
// kernel objects (freestanding, one per instruction set) and all other
// code. Rounding is to nearest, ties to even; formats as in IEEE 754-2008.
#pragma once
#include <stdint.h>

// Exact for every input. A NaN keeps its sign and payload and becomes quiet, as in the processors' own
// conversion.
// Selections instead of branches, so that loops over halves vectorize.
static constexpr float half_to_float(uint16_t half) {
  const uint32_t magnitude = half & 0x7fff, mantissa = half & 0x3ff;
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  const uint32_t special =
      (normal + (112u << 23)) | (mantissa ? 0x400000 : 0);  // infinity, or a NaN made quiet
  const uint32_t subnormal = __builtin_bit_cast(uint32_t, float(int32_t(mantissa)) * 0x1p-24f);
  const uint32_t size = magnitude < 0x400 ? subnormal : magnitude < 0x7c00 ? normal : special;
  return __builtin_bit_cast(float, uint32_t(half & 0x8000) << 16 | size);
}

// 65520 and above become infinity; results below 2^-14 are subnormal; 2^-25 and below become zero.
static constexpr uint16_t float_to_half(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return uint16_t(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));  // NaN
  if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00);                             // 65520
  if (magnitude >= 0x38800000) {                                                           // 2^-14: normal
    // The carry of the rounding correctly runs into the exponent.
    return uint16_t(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
  }
  if (magnitude <= 0x33000000) return uint16_t(sign);  // 2^-25 is a tie between 0 and 2^-24: even is 0
  const uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  const uint32_t shift =
      126 - (magnitude >> 23);  // 14..24: how far the unit of the result, 2^-24, lies above ours
  return uint16_t(sign | ((mantissa + (1u << (shift - 1)) - 1 + (mantissa >> shift & 1)) >> shift));
}

static constexpr float bf16_to_float(uint16_t value) {
  return __builtin_bit_cast(float, uint32_t(value) << 16);
}

// A NaN stays a NaN (quiet, sign and upper payload kept); too large a value becomes infinity.
static constexpr uint16_t float_to_bf16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  if ((bits & 0x7fffffff) > 0x7f800000) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
