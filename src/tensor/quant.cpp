#include "tensor/quant.h"

#include "base/bytes.h"
#include "tensor/quant/values.h"

namespace gimbal {
namespace {

using Value = float (*)(const uint8_t* block, uint32_t j);
using Decoder = void (*)(const uint8_t* blocks, int64_t n, float* out);

// One loop per format, so that the compiler can inline the format's definition.
template <DType type, Value value>
void decode_as(const uint8_t* blocks, int64_t n, float* out) {
  constexpr uint32_t block = info(type).block;
  for (int64_t i = 0; i < n; i += block, blocks += info(type).bytes)
    for (uint32_t j = 0; j < block; j++) out[i + j] = value(blocks, j);
}

Decoder decoder_of(DType type) {
  switch (type) {
    case DType::F32: return decode_as<DType::F32, f32_value>;
    case DType::F16: return decode_as<DType::F16, f16_value>;
    case DType::BF16: return decode_as<DType::BF16, bf16_value>;
    case DType::Q1_0: return decode_as<DType::Q1_0, q1_0_value>;
    case DType::Q2_0: return decode_as<DType::Q2_0, q2_0_value>;
    case DType::Q4_0: return decode_as<DType::Q4_0, q4_0_value>;
    case DType::Q4_1: return decode_as<DType::Q4_1, q4_1_value>;
    case DType::Q5_0: return decode_as<DType::Q5_0, q5_0_value>;
    case DType::Q5_1: return decode_as<DType::Q5_1, q5_1_value>;
    case DType::Q8_0: return decode_as<DType::Q8_0, q8_0_value>;
    case DType::Q2_K: return decode_as<DType::Q2_K, q2_k_value>;
    case DType::Q3_K: return decode_as<DType::Q3_K, q3_k_value>;
    case DType::Q4_K: return decode_as<DType::Q4_K, q4_k_value>;
    case DType::Q5_K: return decode_as<DType::Q5_K, q5_k_value>;
    case DType::Q6_K: return decode_as<DType::Q6_K, q6_k_value>;
    case DType::IQ4_NL: return decode_as<DType::IQ4_NL, iq4_nl_value>;
    case DType::IQ4_XS: return decode_as<DType::IQ4_XS, iq4_xs_value>;
    case DType::MXFP4: return decode_as<DType::MXFP4, mxfp4_value>;
    case DType::NVFP4: return decode_as<DType::NVFP4, nvfp4_value>;
    case DType::TQ1_0: return decode_as<DType::TQ1_0, tq1_0_value>;
    case DType::TQ2_0: return decode_as<DType::TQ2_0, tq2_0_value>;
    case DType::IQ1_S: return decode_as<DType::IQ1_S, iq1_s_value>;
    case DType::IQ1_M: return decode_as<DType::IQ1_M, iq1_m_value>;
    case DType::IQ2_XXS: return decode_as<DType::IQ2_XXS, iq2_xxs_value>;
    case DType::IQ2_XS: return decode_as<DType::IQ2_XS, iq2_xs_value>;
    case DType::IQ2_S: return decode_as<DType::IQ2_S, iq2_s_value>;
    case DType::IQ3_XXS: return decode_as<DType::IQ3_XXS, iq3_xxs_value>;
    case DType::IQ3_S: return decode_as<DType::IQ3_S, iq3_s_value>;
    default: return nullptr;
  }
}

void decode_i2_s(const uint8_t* blocks, int64_t n, float scale, float* out) {
  constexpr DTypeInfo format = info(DType::I2_S);
  for (int64_t i = 0; i < n; i += format.block, blocks += format.bytes)
    for (uint32_t j = 0; j < format.block; j++) out[i + j] = i2_s_value(blocks, scale, j);
}

}  // namespace

bool can_decode(DType type) { return type == DType::I2_S || decoder_of(type); }

void decode(DType type, const void* blocks, int64_t n, float* out, float tensor_scale) {
  const auto* bytes = static_cast<const uint8_t*>(blocks);
  if (type == DType::I2_S) decode_i2_s(bytes, n, tensor_scale, out);
  else decoder_of(type)(bytes, n, out);
}

float tensor_scale(DType type, const void* data, int64_t n) {
  if (type != DType::I2_S) return 1.0f;
  return read_le<float>(static_cast<const uint8_t*>(data) + row_bytes(type, n));
}

void decode_tensor(DType type, const void* data, int64_t n, float* out) {
  decode(type, data, n, out, tensor_scale(type, data, n));
}

}  // namespace gimbal
