// hot: Encoders of the K formats and of IQ4_XS: 256 values, groups with small whole scales. The meaning of
// the bytes: tensor/quant/<format>.inc.
#include <cstring>

#include "tensor/block_encode.h"
#include "tensor/encode/blocks.h"
#include "tensor/encode/levels.h"
#include "tensor/encode/superblock.h"

namespace gimbal::encoding {
namespace {

// 2-bit codes: byte l of a half holds those of values l, l+32, l+64, l+96 of its 128.
void put_pairs(uint8_t* at, const uint8_t* code) {
  for (int half = 0; half < 256; half += 128, at += 32, code += 128)
    for (int l = 0; l < 32; l++)
      at[l] = uint8_t((code[l] & 3) | (code[l + 32] & 3) << 2 | (code[l + 64] & 3) << 4 |
                      (code[l + 96] & 3) << 6);
}

// 4-bit codes of Q4_K and Q5_K: 32 bytes hold 64 values, the first 32 in the low halves.
void put_nibbles(uint8_t* at, const uint8_t* code) {
  for (int run = 0; run < 256; run += 64, at += 32, code += 64)
    for (int l = 0; l < 32; l++) at[l] = uint8_t((code[l] & 15) | (code[l + 32] & 15) << 4);
}

// Bit j / 32 of byte j % 32.
void put_top_bits(uint8_t* at, const uint8_t* code, int bit) {
  std::memset(at, 0, 32);
  for (int j = 0; j < 256; j++) at[j & 31] = uint8_t(at[j & 31] | (code[j] >> bit & 1) << (j >> 5));
}

// Eight 6-bit scales and offsets in 12 bytes (quant/k_scales.inc).
void put_k_scales(uint8_t* at, const uint8_t* scale, const uint8_t* offset) {
  for (int g = 0; g < 4; g++) {
    at[g] = uint8_t(scale[g] | scale[g + 4] >> 4 << 6);
    at[g + 4] = uint8_t(offset[g] | offset[g + 4] >> 4 << 6);
    at[g + 8] = uint8_t((scale[g + 4] & 15) | (offset[g + 4] & 15) << 4);
  }
}

}  // namespace

void encode_q2_k(const float* x, const float* importance, uint8_t* block) {
  const BlockInput<256> in(x, importance);
  const auto b = encode_offset_block<16>(in, 3, 15, kCovers2, kShifts2, 2);
  for (int g = 0; g < 16; g++) block[g] = uint8_t(b.scale[g] | b.offset[g] << 4);
  put_pairs(block + 16, b.code);
  put(block + 80, b.unit), put(block + 82, b.offset_unit);
}

void encode_q3_k(const float* x, const float* importance, uint8_t* block) {
  const BlockInput<256> in(x, importance);
  const auto b = encode_scaled<Whole<-4, 3>, 16>(in, -32, 31, kFactors3);
  uint8_t code[256], scale[16];
  for (int j = 0; j < 256; j++) code[j] = uint8_t(b.level[j] + 4);
  for (int g = 0; g < 16; g++) scale[g] = uint8_t(b.scale[g] + 32);
  put_top_bits(block, code, 2);
  put_pairs(block + 32, code);
  for (int k = 0; k < 8; k++) block[96 + k] = uint8_t((scale[k] & 15) | (scale[k + 8] & 15) << 4);
  for (int k = 0; k < 4; k++)
    block[104 + k] =
        uint8_t(scale[k] >> 4 | scale[k + 4] >> 4 << 2 | scale[k + 8] >> 4 << 4 | scale[k + 12] >> 4 << 6);
  put(block + 108, b.unit);
}

void encode_q4_k(const float* x, const float* importance, uint8_t* block) {
  const BlockInput<256> in(x, importance);
  const auto b = encode_offset_block<32>(in, 15, 63, kCovers4, kShifts4, 1);
  put(block, b.unit), put(block + 2, b.offset_unit);
  put_k_scales(block + 4, b.scale, b.offset);
  put_nibbles(block + 16, b.code);
}

void encode_q5_k(const float* x, const float* importance, uint8_t* block) {
  const BlockInput<256> in(x, importance);
  const auto b = encode_offset_block<32>(in, 31, 63, kCovers5, kShifts5, 1);
  put(block, b.unit), put(block + 2, b.offset_unit);
  put_k_scales(block + 4, b.scale, b.offset);
  put_top_bits(block + 16, b.code, 4);
  put_nibbles(block + 48, b.code);
}

void encode_q6_k(const float* x, const float* importance, uint8_t* block) {
  const BlockInput<256> in(x, importance);
  const auto b = encode_scaled<Whole<-32, 31>, 16>(in, -128, 127, kFactors6);
  uint8_t code[256], top[256];
  for (int j = 0; j < 256; j++) code[j] = uint8_t(b.level[j] + 32), top[j] = uint8_t(code[j] >> 4);
  for (int half = 0; half < 2; half++)
    for (int l = 0; l < 64; l++)
      block[64 * half + l] = uint8_t((code[128 * half + l] & 15) | (code[128 * half + l + 64] & 15) << 4);
  put_pairs(block + 128, top);
  for (int g = 0; g < 16; g++) block[192 + g] = uint8_t(b.scale[g]);
  put(block + 208, b.unit);
}

void encode_iq4_xs(const float* x, const float* importance, uint8_t* block) {
  const BlockInput<256> in(x, importance);
  const auto b = encode_scaled<NonLinear, 32>(in, -32, 31, kFactorsNonLinear);
  put(block, b.unit);
  uint32_t top = 0;
  for (int g = 0; g < 8; g++) top |= uint32_t(b.scale[g] + 32) >> 4 << (2 * g);
  put(block + 2, uint16_t(top));
  for (int k = 0; k < 4; k++)
    block[4 + k] = uint8_t(((b.scale[2 * k] + 32) & 15) | ((b.scale[2 * k + 1] + 32) & 15) << 4);
  for (int g = 0; g < 8; g++)
    for (int l = 0; l < 16; l++)
      block[8 + 16 * g + l] =
          uint8_t(nonlinear_code(b.level[32 * g + l]) | nonlinear_code(b.level[32 * g + l + 16]) << 4);
}

}  // namespace gimbal::encoding
