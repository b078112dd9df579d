// Encodes 32 floats as Q8_0 and Q4_0 blocks exactly as ggml's reference quantizer does, and marks blocks of a
// KV cache that are not finite. No library calls: the kernel objects (freestanding, one per instruction set),
// the reference and tensor/quant_encode.h share this code, so the bits of a cache do not depend on the
// instruction set.
//
// Codes are x times the inverse of the step, in f32: one division, then one product per value, each rounded
// to nearest even. They use the f32 step; the stored step is rounded to f16.
#pragma once
#include <stdint.h>

#include "tensor/half.h"

// The value of largest magnitude, with its sign; the first one on ties. NaN never wins.
static constexpr float extreme_of(const float* x, int n) {
  float extreme = 0;
  for (int i = 0; i < n; i++)
    if (__builtin_fabsf(x[i]) > __builtin_fabsf(extreme)) extreme = x[i];
  return extreme;
}
static constexpr float inverse_of(float step) { return step != 0 ? 1.0f / step : 0.0f; }

static inline void store_half(uint8_t* to, float value) {
  const uint16_t half = float_to_half(value);
  __builtin_memcpy(to, &half, 2);
}

// Rounds to nearest, ties away from zero, clamped to -127..127; 0 for NaN.
static constexpr int8_t code_of_8_bits(float value) {
  const float size = __builtin_fabsf(value);
  if (!(size < 127)) return int8_t(size >= 127 ? (value > 0 ? 127 : -127) : 0);
  const int whole = int(size), nearest = whole + (size - float(whole) >= 0.5f);  // the difference is exact
  return int8_t(value < 0 ? -nearest : nearest);
}

// Step = largest magnitude / 127; code = round(x * (1 / step)).
static inline void encode_q8_0(const float* x, uint8_t* block) {
  const float step = __builtin_fabsf(extreme_of(x, 32)) / 127, per_step = inverse_of(step);
  store_half(block, step);
  for (int i = 0; i < 32; i++) block[2 + i] = uint8_t(code_of_8_bits(x[i] * per_step));
}

// Truncated to 0..15; 0 for NaN.
static constexpr uint8_t code_of_4_bits(float value) {
  return uint8_t(value >= 15 ? 15 : value > 0 ? int(value) : 0);
}

// Step = extreme / -8, so the extreme value gets code 0 and the other end loses one code; code = x * (1 /
// step) + 8.5, truncated to 0..15. Two codes in a byte: values 0..15 in the low halves, 16..31 in the high
// ones.
static inline void encode_q4_0(const float* x, uint8_t* block) {
  const float step = extreme_of(x, 32) / -8, per_step = inverse_of(step);
  store_half(block, step);
  for (int i = 0; i < 16; i++)
    block[2 + i] =
        uint8_t(code_of_4_bits(x[i] * per_step + 8.5f) | code_of_4_bits(x[i + 16] * per_step + 8.5f) << 4);
}

// In a cache, a block that contains NaN or infinity gets the step NaN, so the error stays visible.
static inline void mark_if_not_finite(const float* x, uint8_t* block) {
  bool finite = true;
  for (int i = 0; i < 32; i++) finite = finite && x[i] - x[i] == 0;
  const uint16_t nan = 0x7e00;
  if (!finite) __builtin_memcpy(block, &nan, 2);
}
