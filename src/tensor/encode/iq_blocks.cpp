// hot: Encoders of the codebook formats (IQ1, IQ2, IQ3). The meaning of the bytes: tensor/quant/<format>.inc.
#include <cstring>

#include "tensor/encode/blocks.h"
#include "tensor/encode/iq_search.h"

namespace gimbal::encoding {
namespace {

// Signs of 32 values, 7 bits for 8, and a scale in the top 4 bits.
uint32_t signs_and_scale(const uint8_t* signs, int scale) {
  uint32_t word = uint32_t(scale >> 1) << 28;
  for (int k = 0; k < 4; k++) word |= uint32_t(signs[k] & 127) << (7 * k);
  return word;
}

}  // namespace

void encode_iq2_xxs(const float* x, const float* importance, uint8_t* block) {
  const BlockInput<256> in(x, importance);
  const Signed s(in, true);
  const CodedBlock b = encode_coded(in, s.size, kIq2Xxs);
  put(block, b.unit);
  for (int g = 0; g < 8; g++) {
    for (int k = 0; k < 4; k++) block[2 + 8 * g + k] = uint8_t(b.group[g].point[k]);
    put(block + 6 + 8 * g, signs_and_scale(s.signs + 4 * g, b.scale[g]));
  }
}

void encode_iq2_xs(const float* x, const float* importance, uint8_t* block) {
  const BlockInput<256> in(x, importance);
  const Signed s(in, true);
  const CodedBlock b = encode_coded(in, s.size, kIq2Xs);
  put(block, b.unit);
  for (int part = 0; part < 32; part++)
    put(block + 2 + 2 * part, uint16_t(b.point(part, 2) | (s.signs[part] & 127) << 9));
  for (int k = 0; k < 8; k++) block[66 + k] = uint8_t(b.scale[2 * k] >> 1 | b.scale[2 * k + 1] >> 1 << 4);
}

void encode_iq2_s(const float* x, const float* importance, uint8_t* block) {
  const BlockInput<256> in(x, importance);
  const Signed s(in, false);
  const CodedBlock b = encode_coded(in, s.size, kIq2S);
  std::memset(block, 0, 82);
  put(block, b.unit);
  for (int part = 0; part < 32; part++) {
    const int point = b.point(part, 2);
    block[2 + part] = uint8_t(point), block[34 + part] = s.signs[part];
    block[66 + part / 4] = uint8_t(block[66 + part / 4] | point >> 8 << (2 * (part & 3)));
  }
  for (int k = 0; k < 8; k++) block[74 + k] = uint8_t(b.scale[2 * k] >> 1 | b.scale[2 * k + 1] >> 1 << 4);
}

void encode_iq3_xxs(const float* x, const float* importance, uint8_t* block) {
  const BlockInput<256> in(x, importance);
  const Signed s(in, true);
  const CodedBlock b = encode_coded(in, s.size, kIq3Xxs);
  put(block, b.unit);
  for (int g = 0; g < 8; g++) {
    for (int k = 0; k < 8; k++) block[2 + 8 * g + k] = uint8_t(b.group[g].point[k]);
    put(block + 66 + 4 * g, signs_and_scale(s.signs + 4 * g, b.scale[g]));
  }
}

void encode_iq3_s(const float* x, const float* importance, uint8_t* block) {
  const BlockInput<256> in(x, importance);
  const Signed s(in, false);
  const CodedBlock b = encode_coded(in, s.size, kIq3S);
  std::memset(block, 0, 110);
  put(block, b.unit);
  for (int part = 0; part < 64; part++) {
    const int point = b.point(part, 8);
    block[2 + part] = uint8_t(point);
    block[66 + part / 8] = uint8_t(block[66 + part / 8] | point >> 8 << (part & 7));
  }
  std::memcpy(block + 74, s.signs, 32);
  for (int k = 0; k < 4; k++) block[106 + k] = uint8_t(b.scale[2 * k] >> 1 | b.scale[2 * k + 1] >> 1 << 4);
}

void encode_iq1_s(const float* x, const float* importance, uint8_t* block) {
  const BlockInput<256> in(x, importance);
  const CodedBlock b = encode_coded(in, in.x, kIq1S);
  put(block, b.unit);
  for (int g = 0; g < 8; g++) {
    int word = b.scale[g] >> 1 << 12 | (b.group[g].shift & 1) << 15;
    for (int k = 0; k < 4; k++) {
      block[2 + 4 * g + k] = uint8_t(b.group[g].point[k]);
      word |= b.group[g].point[k] >> 8 << (3 * k);
    }
    put(block + 34 + 2 * g, uint16_t(word));
  }
}

void encode_iq1_m(const float* x, const float* importance, uint8_t* block) {
  const BlockInput<256> in(x, importance);
  const CodedBlock b = encode_coded(in, in.x, kIq1M);
  for (int k = 0; k < 16; k++) {
    int byte = 0;
    for (int p = 0; p < 2; p++) {
      block[2 * k + p] = uint8_t(b.group[k].point[p]);
      byte |= (b.group[k].point[p] >> 8 | (b.group[k].shift >> p & 1) << 3) << (4 * p);
    }
    block[32 + k] = uint8_t(byte);
  }
  for (int k = 0; k < 4; k++) {
    int word = (b.unit >> (4 * k) & 15) << 12;
    for (int g = 0; g < 4; g++) word |= b.scale[4 * k + g] >> 1 << (3 * g);
    put(block + 48 + 2 * k, uint16_t(word));
  }
}

}  // namespace gimbal::encoding
