// The values of one block of 256, brought to a size of about 1 by a power of two, with usable weights: what
// the encoders of all formats with a common unit begin with.
#pragma once
#include <stdint.h>

#include "tensor/half.h"

namespace gimbal::encoding {

static inline void put(uint8_t* at, uint16_t half) { __builtin_memcpy(at, &half, 2); }
static inline void put(uint8_t* at, uint32_t word) { __builtin_memcpy(at, &word, 4); }

// Largest half; larger units are stored as this one, so that a block never holds infinity.
inline constexpr float kLargestUnit = 65504.0f;

// A block with so small an error, as a share of its sum of w x^2, is held but for the rounding of its unit to
// a half. Other units then make a difference, and such blocks are few.
inline constexpr float kHeld = 3e-5f;

// Halves below 2^-14 have fewer bits the smaller they are, so a unit can be far from the one it is stored as.
// Below 2^-18, the units next to it are tried; below 2^-21 it has so few bits that all units are. Zero is
// one.
static inline bool is_coarse(uint16_t half) { return (half & 0x7fff) < 64; }
static inline bool is_very_coarse(uint16_t half) { return (half & 0x7fff) < 8; }

template <int N>
struct BlockInput {
  float x[N], w[N];
  float size = 0;  // what x was divided by: a power of two; 0: all values are zero, or far too small
  float per_size = 0;

  // `importance` may be null. Values that are not finite count as 0. Weights are at least a millionth of the
  // largest one of the block: a column that no text used keeps its values about right.
  BlockInput(const float* values, const float* importance) {
    uint32_t largest = 0;
    float heaviest = 0;
    for (int i = 0; i < N; i++) {
      const uint32_t bits = __builtin_bit_cast(uint32_t, values[i]) & 0x7fffffff;
      if (bits < 0x7f800000 && bits > largest) largest = bits;
      if (importance && importance[i] > heaviest) heaviest = importance[i];
    }
    const uint32_t exponent = largest >> 23;
    if (exponent >= 127 - 100) {
      const uint32_t bounded = exponent < 253 ? exponent : 253;
      size = __builtin_bit_cast(float, bounded << 23),
      per_size = __builtin_bit_cast(float, (254 - bounded) << 23);
    }
    const bool weighted = heaviest > 0 && heaviest <= 3e38f;
    for (int i = 0; i < N; i++) {
      const uint32_t bits = __builtin_bit_cast(uint32_t, values[i]) & 0x7fffffff;
      x[i] = bits < 0x7f800000 ? values[i] * per_size : 0;
      w[i] = 1;
      if (!weighted) continue;
      const float weight = importance[i] / heaviest;
      w[i] = weight > 1e-6f ? weight : 1e-6f;
    }
  }

  // The unit of x that is stored as this half.
  float unit_of(uint16_t half, float divisor = 1) const { return half_to_float(half) * per_size / divisor; }

  // Rounds a unit of x to the half that a block stores, and makes it the unit of that half. Formats with a
  // divisor, a power of two, store the unit times it.
  uint16_t stored(float& unit, float divisor = 1) const {
    float whole = unit * size * divisor;
    if (!(whole < kLargestUnit)) whole = kLargestUnit;
    if (whole < -kLargestUnit) whole = -kLargestUnit;
    const uint16_t half = float_to_half(whole);
    unit = unit_of(half, divisor);
    return half;
  }
};

template <int N>
float energy_of(const BlockInput<N>& in) {
  float energy = 0;
  for (int i = 0; i < N; i++) energy += in.w[i] * in.x[i] * in.x[i];
  return energy;
}

}  // namespace gimbal::encoding
