// Random blocks: random bits, with the few fields that are scales set to sane values.
#include <cstring>

#include "tensor/half.h"
#include "tensor/quant_encode.h"

namespace gimbal {
namespace {

// Byte offsets of a block's f16 fields, -1 where there is none; and a scale that gives values of about 1.
struct Fields {
  int unit, minimum_unit;
  float scale;
};
Fields fields(DType t) {
  switch (t) {
    case DType::Q4_0:
    case DType::IQ4_NL: return {0, -1, t == DType::Q4_0 ? 0.15f : 0.012f};
    case DType::Q4_1:
    case DType::Q5_1: return {0, 2, 0.1f};
    case DType::Q5_0: return {0, -1, 0.08f};
    case DType::Q8_0: return {0, -1, 0.01f};
    case DType::Q2_K: return {80, 82, 0.04f};
    case DType::Q3_K: return {108, -1, 0.015f};
    case DType::Q4_K:
    case DType::Q5_K: return {0, 2, 0.003f};
    case DType::Q6_K: return {208, -1, 0.0005f};
    case DType::IQ4_XS: return {0, -1, 0.0006f};
    case DType::TQ1_0: return {52, -1, 1.f};
    case DType::TQ2_0: return {64, -1, 1.f};
    case DType::IQ2_XXS:
    case DType::IQ2_XS:
    case DType::IQ2_S:
    case DType::IQ3_XXS:
    case DType::IQ3_S: return {0, -1, 0.005f};
    case DType::IQ1_S: return {0, -1, 0.1f};
    case DType::Q1_0:
    case DType::Q2_0: return {0, -1, 1.f};
    default: return {-1, -1, 1.f};
  }
}

void put_half(uint8_t* at, float v) {
  const uint16_t h = float_to_half(v);
  std::memcpy(at, &h, 2);
}

}  // namespace

void random_blocks(DType type, int64_t n, void* blocks, const std::function<uint64_t()>& next) {
  const Fields f = fields(type);
  auto* b = static_cast<uint8_t*>(blocks);
  for (int64_t i = 0; i < n / info(type).block; i++, b += info(type).bytes) {
    for (int k = 0; k < info(type).bytes; k++) b[k] = uint8_t(next() >> 56);
    const float vary = 0.5f + float(next() >> 40) / float(1 << 24);
    if (f.unit >= 0) put_half(b + f.unit, f.scale * vary);
    if (f.minimum_unit >= 0) put_half(b + f.minimum_unit, f.scale * vary);
    if (type == DType::TQ2_0 || type == DType::I2_S)  // the code 3 never occurs
      for (int k = 0; k < (type == DType::TQ2_0 ? 64 : 32); k++) b[k] = uint8_t(b[k] & (0x55 | ~(b[k] << 1)));
    if (type == DType::MXFP4) b[0] = uint8_t(126 + (next() >> 62));  // powers of two near 1
    if (type == DType::NVFP4)
      for (int k = 0; k < 4; k++) b[k] = uint8_t(0x30 + (next() >> 60));
    if (type == DType::IQ1_M)  // the f16 lies in the top nibbles of the last four 16-bit words
      for (int k = 0; k < 4; k++)
        b[49 + 2 * k] = uint8_t((b[49 + 2 * k] & 15) | (float_to_half(0.1f * vary) >> (4 * k) & 15) << 4);
  }
}

}  // namespace gimbal
