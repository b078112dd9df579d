// hot: The plain formats, those whose encoder is ggml's, and the table of the others (tensor/encode).
#include "tensor/quant_encode.h"

#include <cmath>
#include <cstring>

#include "tensor/block_encode.h"
#include "tensor/encode/blocks.h"
#include "tensor/encode/lanes.h"
#include "tensor/half.h"

namespace gimbal {
namespace {

void encode_q5_1(const float* x, uint8_t* block) {
  uint8_t codes[32];
  encode_range(x, 31, block, codes);
  store_fifth_bits(codes, block + 4);
  store_nibbles(codes, block + 8);
}

void encode_f32(const float* x, uint8_t* to) { std::memcpy(to, x, 4); }
void encode_f16(const float* x, uint8_t* to) { store_half(to, *x); }
void encode_bf16(const float* x, uint8_t* to) {
  const uint16_t bits = float_to_bf16(*x);
  std::memcpy(to, &bits, 2);
}

// The encoder of single blocks, whose importance may be null.
encoding::BlockEncoder searching_encoder(DType type) {
  switch (type) {
#define GIMBAL_SEARCHED(id, name) \
  case DType::id: return encoding::encode_##name;
    GIMBAL_SEARCHED(Q2_K, q2_k)
    GIMBAL_SEARCHED(Q3_K, q3_k)
    GIMBAL_SEARCHED(Q4_K, q4_k)
    GIMBAL_SEARCHED(Q5_K, q5_k)
    GIMBAL_SEARCHED(Q6_K, q6_k)
    GIMBAL_SEARCHED(IQ4_XS, iq4_xs)
    GIMBAL_SEARCHED(IQ2_XXS, iq2_xxs)
    GIMBAL_SEARCHED(IQ2_XS, iq2_xs)
    GIMBAL_SEARCHED(IQ2_S, iq2_s)
    GIMBAL_SEARCHED(IQ3_XXS, iq3_xxs)
    GIMBAL_SEARCHED(IQ3_S, iq3_s)
    GIMBAL_SEARCHED(IQ1_S, iq1_s)
    GIMBAL_SEARCHED(IQ1_M, iq1_m)
    GIMBAL_SEARCHED(TQ1_0, tq1_0)
    GIMBAL_SEARCHED(TQ2_0, tq2_0)
    GIMBAL_SEARCHED(MXFP4, mxfp4)
    GIMBAL_SEARCHED(NVFP4, nvfp4)
    GIMBAL_SEARCHED(Q1_0, q1_0)
    GIMBAL_SEARCHED(Q2_0, q2_0)
#undef GIMBAL_SEARCHED
    default: return nullptr;
  }
}

// The encoder of encoding::kLanes blocks at once.
encoding::BlockEncoder weighted_encoder(DType type, bool weighted) {
  if (type == DType::IQ4_NL) return encoding::encode_weighted_iq4_nl;
  if (!weighted) return nullptr;
  switch (type) {
    case DType::Q4_0: return encoding::encode_weighted_q4_0;
    case DType::Q4_1: return encoding::encode_weighted_q4_1;
    case DType::Q5_0: return encoding::encode_weighted_q5_0;
    case DType::Q5_1: return encoding::encode_weighted_q5_1;
    default: return nullptr;
  }
}

using PlainEncoder = void (*)(const float* x, uint8_t* block);

PlainEncoder plain_encoder(DType type) {
  switch (type) {
    case DType::F32: return encode_f32;
    case DType::F16: return encode_f16;
    case DType::BF16: return encode_bf16;
    case DType::Q4_0: return encode_q4_0;
    case DType::Q5_0: return encode_q5_0;
    case DType::Q4_1: return encode_q4_1;
    case DType::Q5_1: return encode_q5_1;
    case DType::Q8_0: return encode_q8_0;
    default: return nullptr;
  }
}

// Lanes without a block get zeros.
void encode_in_lanes(encoding::BlockEncoder encoder, DType type, const float* x, int64_t n, uint8_t* blocks,
                     const float* importance) {
  constexpr int lanes = encoding::kLanes;
  const int bytes = info(type).bytes;
  int64_t i = 0;
  for (; i + 32 * lanes <= n; i += 32 * lanes, blocks += lanes * bytes)
    encoder(x + i, importance ? importance + i : nullptr, blocks);
  if (i == n) return;
  float values[32 * lanes] = {}, weights[32 * lanes] = {};
  uint8_t rest[24 * lanes];
  std::memcpy(values, x + i, size_t(n - i) * sizeof(float));
  if (importance) std::memcpy(weights, importance + i, size_t(n - i) * sizeof(float));
  encoder(values, importance ? weights : nullptr, rest);
  std::memcpy(blocks, rest, size_t(row_bytes(type, n - i)));
}

}  // namespace

bool can_encode(DType type) {
  return plain_encoder(type) || searching_encoder(type) || weighted_encoder(type, false);
}

bool encodes_fast(DType type) { return plain_encoder(type) || type == DType::Q6_K; }

bool wants_importance(DType type) {
  return type == DType::IQ1_S || type == DType::IQ2_XXS || type == DType::IQ2_XS;
}

void encode(DType type, const float* x, int64_t n, void* blocks, const float* importance) {
  auto* block = static_cast<uint8_t*>(blocks);
  if (const auto encoder = weighted_encoder(type, importance))
    return encode_in_lanes(encoder, type, x, n, block, importance);
  const int length = info(type).block, bytes = info(type).bytes;
  if (const auto encoder = searching_encoder(type)) {
    for (int64_t i = 0; i < n; i += length, block += bytes)
      encoder(x + i, importance ? importance + i : nullptr, block);
    return;
  }
  const PlainEncoder encoder = plain_encoder(type);
  for (int64_t i = 0; i < n; i += length, block += bytes) encoder(x + i, block);
}

}  // namespace gimbal
