#include "tensor/quant_encode.h"

#include <cfloat>
#include <cmath>
#include <cstring>

#include "tensor/block_encode.h"
#include "tensor/half.h"

namespace gimbal {
namespace {

// Truncates to 0..top. Defined for every input: NaN gives 0,
// values out of range are clamped.
uint32_t code_of(float value, uint32_t top) {
  if (value >= float(top)) return top;
  return value > 0 ? uint32_t(value) : 0;
}

// Stores 4-bit codes in 16 bytes, the first 16 values in the low halves; `top_bits` (5-bit formats) gets the
// fifth bits.
void store_codes(const uint32_t* codes, uint8_t* low_bits, uint8_t* top_bits) {
  for (int i = 0; i < 16; i++) low_bits[i] = uint8_t((codes[i] & 15) | (codes[i + 16] & 15) << 4);
  if (!top_bits) return;
  uint32_t top = 0;
  for (int i = 0; i < 32; i++) top |= (codes[i] >> 4) << i;
  std::memcpy(top_bits, &top, 4);
}

// As Q4_0: the extreme value gets code 0, so the step carries its sign and the other end loses one code.
void encode_q5_0(const float* x, uint8_t* block) {
  const float step = extreme_of(x, 32) / -16, per_step = inverse_of(step);
  uint32_t codes[32];
  for (int i = 0; i < 32; i++) codes[i] = code_of(x[i] * per_step + 16.5f, 31);
  store_half(block, step);
  store_codes(codes, block + 6, block + 2);
}

// Q4_1 and Q5_1: codes span the range from the smallest to the largest value.
template <int bits>
void encode_offset(const float* x, uint8_t* block) {
  float low = FLT_MAX, high = -FLT_MAX;
  for (int i = 0; i < 32; i++) {
    if (x[i] < low) low = x[i];
    if (x[i] > high) high = x[i];
  }
  constexpr uint32_t top = (1 << bits) - 1;
  const float step = (high - low) / float(top), per_step = inverse_of(step);
  uint32_t codes[32];
  for (int i = 0; i < 32; i++) codes[i] = code_of((x[i] - low) * per_step + 0.5f, top);
  store_half(block, step);
  store_half(block + 2, low);
  store_codes(codes, block + (bits == 5 ? 8 : 4), bits == 5 ? block + 4 : nullptr);
}

void encode_q6_k(const float* x, uint8_t* block) {
  std::memset(block, 0, 210);
  float extreme[16], largest = 0;
  for (int g = 0; g < 16; g++) {
    extreme[g] = extreme_of(x + 16 * g, 16);
    largest = std::fmax(largest, std::fabs(extreme[g]));
  }
  // The unit rounds up, so that no group needs a scale beyond 127.
  const float exact_unit = largest / (32 * 127);
  uint16_t half_unit = float_to_half(exact_unit);
  if (half_to_float(half_unit) < exact_unit) half_unit++;
  const float unit = half_to_float(half_unit);
  std::memcpy(block + 208, &half_unit, 2);
  for (int g = 0; g < 16; g++) {
    // The extreme value gets code -32, so the scale carries its sign and the other end loses one code.
    const int size = int(code_of(std::ceil(std::fabs(extreme[g]) / 32 * inverse_of(unit)), 127));
    const int scale = extreme[g] > 0 ? -size : size;
    block[192 + g] = uint8_t(int8_t(scale));
    const float per_step = inverse_of(unit * float(scale));
    for (int i = 0; i < 16; i++) {
      const uint32_t code = code_of(x[16 * g + i] * per_step + 32.5f, 63);
      const int j = 16 * g + i;
      block[64 * (j >> 7) + (j & 63)] |= uint8_t((code & 15) << (4 * (j >> 6 & 1)));
      block[128 + 32 * (j >> 7) + (j & 31)] |= uint8_t((code >> 4) << (2 * (j >> 5 & 3)));
    }
  }
}

void encode_f32(const float* x, uint8_t* to) { std::memcpy(to, x, 4); }
void encode_f16(const float* x, uint8_t* to) { store_half(to, *x); }
void encode_bf16(const float* x, uint8_t* to) {
  const uint16_t bits = float_to_bf16(*x);
  std::memcpy(to, &bits, 2);
}

using BlockEncoder = void (*)(const float* x, uint8_t* block);

BlockEncoder encoder_of(DType type) {
  switch (type) {
    case DType::F32: return encode_f32;
    case DType::F16: return encode_f16;
    case DType::BF16: return encode_bf16;
    case DType::Q4_0: return encode_q4_0;
    case DType::Q5_0: return encode_q5_0;
    case DType::Q4_1: return encode_offset<4>;
    case DType::Q5_1: return encode_offset<5>;
    case DType::Q8_0: return encode_q8_0;
    case DType::Q6_K: return encode_q6_k;
    default: return nullptr;
  }
}

}  // namespace

bool can_encode(DType type) { return encoder_of(type); }

void encode(DType type, const float* x, int64_t n, void* blocks) {
  const BlockEncoder encode_block = encoder_of(type);
  auto* block = static_cast<uint8_t*>(blocks);
  for (int64_t i = 0; i < n; i += info(type).block, block += info(type).bytes) encode_block(x + i, block);
}

}  // namespace gimbal
