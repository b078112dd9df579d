// hot: One decoder for each weight format.
#include "tensor/quant.h"

#include <cstring>

#include "base/bytes.h"
#include "tensor/quant/values.h"

namespace gimbal {
namespace {

using Decoder = void (*)(const uint8_t* blocks, int64_t n, float scale, float* out);

// One loop per format, so that the compiler can inline the format's definition.
template <DType type, class Meaning>
void decode_as(const uint8_t* blocks, int64_t n, float scale, float* out) {
  constexpr uint32_t block = info(type).block;
  for (int64_t i = 0; i < n; i += block, blocks += info(type).bytes)
    for (uint32_t j = 0; j < block; j++) {
      const float value = Meaning::value_of(blocks, j);
      out[i + j] = format_of(type).tensor_scale ? value * scale : value;
    }
}

// Most sources of a quantization: in runs of a constant length, which become vectors.
void decode_f16(const uint8_t* halves, int64_t n, float, float* out) {
  constexpr int kRun = 32;
  uint16_t run[kRun];
  for (; n >= kRun; n -= kRun, halves += sizeof run, out += kRun) {
    std::memcpy(run, halves, sizeof run);
    for (int j = 0; j < kRun; j++) out[j] = half_to_float(run[j]);
  }
  decode_as<DType::F16, quant::F16>(halves, n, 1, out);
}

Decoder decoder_of(DType type) {
  if (type == DType::F16) return decode_f16;
  switch (type) {
#define GIMBAL_FORMAT(id, name, ...) \
  case DType::id:                    \
    return decode_as<DType::id, quant::id>;
#define GIMBAL_DECODED(id) GIMBAL_FORMAT(id, )
#include "tensor/formats.def"
#undef GIMBAL_DECODED
#undef GIMBAL_FORMAT
    default: return nullptr;
  }
}

}  // namespace

bool can_decode(DType type) { return decoder_of(type); }

void decode(DType type, const void* blocks, int64_t n, float* out, float tensor_scale) {
  decoder_of(type)(static_cast<const uint8_t*>(blocks), n, tensor_scale, out);
}

float tensor_scale(DType type, const void* data, int64_t n) {
  if (!tensor_tail_bytes(type)) return 1.0f;
  return read_le<float>(static_cast<const uint8_t*>(data) + row_bytes(type, n));
}

void decode_tensor(DType type, const void* data, int64_t n, float* out) {
  decode(type, data, n, out, tensor_scale(type, data, n));
}

}  // namespace gimbal
