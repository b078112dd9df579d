// hot: Encoders of formats with few levels, which leave nothing to a search: ternary, MXFP4, NVFP4, Q1_0 and
// Q2_0, as ggml's reference quantizer has them.
#include <cstring>
#include <initializer_list>

#include "tensor/block_encode.h"
#include "tensor/encode/blocks.h"

namespace gimbal::encoding {
namespace {

constexpr int8_t kFloat4Levels[8] = {0, 1, 2, 3, 4, 6, 8, 12};  // magnitudes of quant/fp4_levels.def

// 0, 1, 2: rounded to -1, 0, 1, a half away from zero; 1 for NaN.
int trit_of(float value) { return 1 + (value >= 0.5f) - (value <= -0.5f); }

// Five digits of a byte as the fraction digits / 3^5 of 256, rounded up.
uint8_t packed_trits(int digits) { return uint8_t((digits * 256 + 242) / 243); }

// The nearest level times `unit`, the smaller one on ties; a negative zero has code 0.
uint8_t float4_code(float value, float unit) {
  const float size = __builtin_fabsf(value);
  int best = 0;
  float least = size;
  for (int k = 1; k < 8; k++) {
    const float miss = __builtin_fabsf(float(kFloat4Levels[k]) * unit - size);
    if (miss < least) best = k, least = miss;
  }
  return uint8_t(best && value < 0 ? best + 8 : best);
}

// The unsigned E4M3 code next to a value of at most 448; halves of the last bit are rounded up.
uint8_t e4m3_code(float value) {
  if (!(value > 0)) return 0;
  if (value >= 448) return 0x7e;
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const int exponent = int(bits >> 23) - 120;
  if (exponent <= 0) {
    const int steps = int(value * 512 + 0.5f);
    return uint8_t(steps < 7 ? steps : 7);
  }
  const uint32_t code = (uint32_t(exponent) << 3 | (bits >> 20 & 7)) + (bits >> 19 & 1);
  return uint8_t(code < 0x78 ? code : 0x7e);
}

float half_of_e4m3(uint8_t code) {
  const int exponent = code >> 3, mantissa = code & 7;
  if (exponent == 0) return float(mantissa) * 0x1p-10f;
  return __builtin_bit_cast(float, uint32_t(exponent + 119) << 23 | uint32_t(mantissa) << 20);
}

}  // namespace

void encode_tq1_0(const float* x, const float*, uint8_t* block) {
  const float step = __builtin_fabsf(extreme_of(x, 256)), per_step = inverse_of(step);
  uint8_t* at = block;
  struct Run {
    int bytes, digits;
  };
  for (Run run : {Run{32, 5}, Run{16, 5}, Run{4, 4}}) {
    for (int m = 0; m < run.bytes; m++) {
      int digits = 0;
      for (int n = 0; n < run.digits; n++) digits = 3 * digits + trit_of(x[m + n * run.bytes] * per_step);
      *at++ = packed_trits(run.digits == 5 ? digits : 3 * digits);
    }
    x += run.bytes * run.digits;
  }
  store_half(block + 52, step);
}

void encode_tq2_0(const float* x, const float*, uint8_t* block) {
  const float step = __builtin_fabsf(extreme_of(x, 256)), per_step = inverse_of(step);
  for (int half = 0; half < 2; half++)
    for (int m = 0; m < 32; m++) {
      int byte = 0;
      for (int n = 0; n < 4; n++) byte |= trit_of(x[128 * half + m + 32 * n] * per_step) << (2 * n);
      block[32 * half + m] = uint8_t(byte);
    }
  store_half(block + 64, step);
}

void encode_mxfp4(const float* x, const float*, uint8_t* block) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, extreme_of(x, 32)) & 0x7fffffff;
  const int exponent = int(bits >> 23) - 2;  // the largest value lies between 4 and 8 units
  const auto code = uint8_t(exponent > 0 ? exponent : 0);
  const float unit = __builtin_bit_cast(float, code < 2 ? 0x00200000u << code : uint32_t(code - 1) << 23);
  block[0] = code;
  for (int j = 0; j < 16; j++)
    block[1 + j] = uint8_t(float4_code(x[j], unit) | float4_code(x[j + 16], unit) << 4);
}

void encode_nvfp4(const float* x, const float*, uint8_t* block) {
  for (int group = 0; group < 4; group++, x += 16) {
    block[group] = e4m3_code(__builtin_fabsf(extreme_of(x, 16)) / 6);
    const float unit = half_of_e4m3(block[group]);
    for (int j = 0; j < 8; j++)
      block[4 + 8 * group + j] = uint8_t(float4_code(x[j], unit) | float4_code(x[j + 8], unit) << 4);
  }
}

// The mean magnitude; 1 for values of at least 0.
void encode_q1_0(const float* x, const float*, uint8_t* block) {
  float sum = 0;
  std::memset(block, 0, 18);
  for (int j = 0; j < 128; j++) {
    sum += __builtin_fabsf(x[j]);
    if (x[j] >= 0) block[2 + j / 8] = uint8_t(block[2 + j / 8] | 1 << (j & 7));
  }
  store_half(block, sum / 128);
}

// The scale is the largest magnitude, so that the level 2 occurs in other programs' files only.
void encode_q2_0(const float* x, const float*, uint8_t* block) {
  const float step = __builtin_fabsf(extreme_of(x, 64)), per_step = inverse_of(step);
  for (int j = 0; j < 16; j++) {
    int byte = 0;
    for (int k = 0; k < 4; k++) byte |= trit_of(x[4 * j + k] * per_step) << (2 * k);
    block[2 + j] = uint8_t(byte);
  }
  store_half(block, step);
}

}  // namespace gimbal::encoding
