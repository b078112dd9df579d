// Encodes 32 floats as blocks of a KV cache: Q8_0, Q4_0, Q4_1 and Q5_0 exactly as ggml's reference quantizer
// does, IQ4_NL by a formula of its own; marks blocks that are not finite. No library calls: the kernel
// objects (freestanding, one per instruction set), the reference and tensor/quant_encode.h share this code,
// so the bits of a cache do not depend on the instruction set.
//
// Codes are x times the inverse of the step, in f32: one division, then one product per value, each rounded
// to nearest even. They use the f32 step; the stored step is rounded to f16.
#pragma once
#include <stdint.h>

#include "tensor/dtype.h"
#include "tensor/half.h"

// Values four at a time, on every processor. Comparisons choose, so NaN is never the larger one.
typedef float FourFloats __attribute__((vector_size(16)));
typedef int32_t FourInts __attribute__((vector_size(16)));
static inline FourFloats four_of(const float* x) {
  FourFloats v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}
static inline FourFloats sizes_of(FourFloats v) { return FourFloats(FourInts(v) & 0x7fffffff); }

// The value of largest magnitude, with its sign; the first one on ties. NaN never wins. `n`: a multiple of 4.
static inline float extreme_of(const float* x, int n) {
  FourFloats highs{}, lows{};
  for (int i = 0; i < n; i += 4) {
    const FourFloats v = four_of(x + i);
    highs = v > highs ? v : highs, lows = v < lows ? v : lows;
  }
  float high = 0, low = 0;
  for (int k = 0; k < 4; k++) {
    if (highs[k] > high) high = highs[k];
    if (lows[k] < low) low = lows[k];
  }
  if (high != -low) return high > -low ? high : low;
  for (int i = 0; high > 0 && i < n; i++)
    if (__builtin_fabsf(x[i]) == high) return x[i];
  return 0;
}
static constexpr float inverse_of(float step) { return step != 0 ? 1.0f / step : 0.0f; }

static inline void store_half(uint8_t* to, float value) {
  const uint16_t half = float_to_half(value);
  __builtin_memcpy(to, &half, 2);
}

// Codes of 32 values times `per_step`: rounded to nearest, ties away from zero, clamped to -127..127; 0 for
// NaN.
static inline void store_codes_of_8_bits(const float* x, float per_step, uint8_t* codes) {
  for (int i = 0; i < 32; i += 4) {
    const FourFloats scaled = four_of(x + i) * per_step, size = sizes_of(scaled);
    const FourFloats clamped = size < 127 ? size : size >= 127 ? FourFloats{} + 127 : FourFloats{};
    const FourInts whole = __builtin_convertvector(clamped, FourInts), sign = FourInts(scaled) >> 31;
    const FourFloats rest = clamped - __builtin_convertvector(whole, FourFloats);  // exact
    const FourInts nearest = whole - FourInts(rest >= 0.5f), code = (nearest ^ sign) - sign;
    for (int k = 0; k < 4; k++) codes[i + k] = uint8_t(code[k]);
  }
}

// Step = largest magnitude / 127; code = round(x * (1 / step)).
static inline void encode_q8_0(const float* x, uint8_t* block) {
  const float step = __builtin_fabsf(extreme_of(x, 32)) / 127, per_step = inverse_of(step);
  store_half(block, step);
  store_codes_of_8_bits(x, per_step, block + 2);
}

// Codes of 32 values: (x - low) * per_step + bias, truncated to 0..top; 0 for NaN.
static inline void codes_below(const float* x, float low, float per_step, float bias, int top,
                               uint8_t* codes) {
  for (int i = 0; i < 32; i += 4) {
    const FourFloats v = (four_of(x + i) - low) * per_step + bias, most = FourFloats{} + float(top);
    const FourFloats clamped = v >= most ? most : v > 0 ? v : FourFloats{};
    const FourInts code = __builtin_convertvector(clamped, FourInts);
    for (int k = 0; k < 4; k++) codes[i + k] = uint8_t(code[k]);
  }
}

// Two codes in a byte: values 0..15 in the low halves, 16..31 in the high ones. `fifth` gets the top bits of
// codes of 5 bits.
static inline void store_nibbles(const uint8_t* codes, uint8_t* nibbles) {
  for (int i = 0; i < 16; i++) nibbles[i] = uint8_t((codes[i] & 15) | (codes[i + 16] & 15) << 4);
}
static inline void store_fifth_bits(const uint8_t* codes, uint8_t* fifth) {
  for (int i = 0; i < 4; i++) {
    int bits = 0;
    for (int j = 0; j < 8; j++) bits |= codes[8 * i + j] >> 4 << j;
    fifth[i] = uint8_t(bits);
  }
}

// Step = extreme / -half (8 or 16), so the extreme value gets code 0 and the other end loses one code; code =
// x * (1 / step) + half + 0.5, truncated.
static inline void encode_q4_0(const float* x, uint8_t* block) {
  const float step = extreme_of(x, 32) / -8, per_step = inverse_of(step);
  uint8_t codes[32];
  codes_below(x, 0, per_step, 8.5f, 15, codes);
  store_half(block, step);
  store_nibbles(codes, block + 2);
}
static inline void encode_q5_0(const float* x, uint8_t* block) {
  const float step = extreme_of(x, 32) / -16, per_step = inverse_of(step);
  uint8_t codes[32];
  codes_below(x, 0, per_step, 16.5f, 31, codes);
  store_half(block, step);
  store_fifth_bits(codes, block + 2);
  store_nibbles(codes, block + 6);
}

// Codes 0..top span the range from the smallest to the largest value, low = the smallest: step = range / top;
// code = (x - low) * (1 / step) + 0.5, truncated. Stores the step and the low value.
static inline void encode_range(const float* x, int top, uint8_t* block, uint8_t* codes) {
  float low = __FLT_MAX__, high = -__FLT_MAX__;
  for (int i = 0; i < 32; i++) {
    if (x[i] < low) low = x[i];
    if (x[i] > high) high = x[i];
  }
  const float step = (high - low) / float(top), per_step = inverse_of(step);
  codes_below(x, low, per_step, 0.5f, top, codes);
  store_half(block, step);
  store_half(block + 2, low);
}
static inline void encode_q4_1(const float* x, uint8_t* block) {
  uint8_t codes[32];
  encode_range(x, 15, block, codes);
  store_nibbles(codes, block + 4);
}

// The extreme value gets the level of largest magnitude, -127: a = x * (1 / (extreme / -127)); each code is
// the level nearest to a, the higher one on ties. Then the step is the least-squares fit of the chosen levels
// to the values, each weighted with its square: extreme / -127 times the sum of a * a * a * level over the
// sum of a * a * level * level. The factors are multiplied from left to right, the sums added from value 0
// on, every result rounded to f32; a is at most 127 and a little more, so nothing overflows. (The quantizer
// of models looks for a better step: tensor/encode/short_blocks.cpp.)
static constexpr int8_t kNonLinearLevels[16] = {
#include "tensor/quant/iq4_nl_levels.def"
};
static constexpr int nonlinear_code_of(float a) {
  int code = 0;
  for (int i = 0; i < 15; i++)
    code += a >= float(kNonLinearLevels[i] + kNonLinearLevels[i + 1]) / 2;  // exact
  return code;
}
static inline void encode_iq4_nl(const float* x, uint8_t* block) {
  const float unit = extreme_of(x, 32) / -127, per_unit = inverse_of(unit);
  float products = 0, squares = 0;
  uint8_t codes[32];
  for (int i = 0; i < 32; i++) {
    const float a = x[i] * per_unit, weight = a * a;
    codes[i] = uint8_t(nonlinear_code_of(a));
    const auto level = float(kNonLinearLevels[codes[i]]);
    products += weight * a * level;
    squares += weight * level * level;
  }
  const float fit = products / squares;
  store_half(block, fit - fit == 0 ? unit * fit : unit);  // not finite: of zeros, of the smallest numbers
  store_nibbles(codes, block + 2);
}

// In a cache, a block that contains NaN or infinity gets the step NaN, so the error stays visible.
static inline void mark_if_not_finite(const float* x, uint8_t* block) {
  bool finite = true;
  for (int i = 0; i < 32; i++) finite = finite && x[i] - x[i] == 0;
  const uint16_t nan = 0x7e00;
  if (!finite) __builtin_memcpy(block, &nan, 2);
}

// The block of a cache of format `type`, at most kMostBlockBytes.
static constexpr int kMostBlockBytes = 34;
static inline void encode_cached(gimbal::DType type, const float* x, uint8_t* block) {
  if (type == gimbal::DType::Q8_0) encode_q8_0(x, block);
  else if (type == gimbal::DType::Q5_0) encode_q5_0(x, block);
  else if (type == gimbal::DType::Q4_1) encode_q4_1(x, block);
  else if (type == gimbal::DType::IQ4_NL) encode_iq4_nl(x, block);
  else encode_q4_0(x, block);
  mark_if_not_finite(x, block);
}
