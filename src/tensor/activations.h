// Memory layout of quantized activations: rows of int8 blocks, each
// with its scale, its codes, and sums of the codes. The sums save
// kernels a multiplication with the weights' zero points. Freestanding.
#pragma once
#include "tensor/dtype.h"

namespace gimbal {

struct Activations {
  int block = 0, bytes = 0;   // values and bytes per block
  int codes = 0;              // offset of the codes, one i8 each
  int sums = 0, sum_of = 0;   // offset of the sums; codes per sum
  int sum_bytes = 0;          // bytes per sum: 4 (i32) or 2 (i16)
  bool scale_of_row = false;  // one scale for the whole row, repeated in each block
};
// With one scale per row, the product with a row of -1, 0, 1 is a single integer sum. Up to this many values
// it stays below 2^24: exact as i32 and as f32.
constexpr int64_t kMaxScaleOfRow = (int64_t(1) << 24) / 127;
// Values whose largest magnitude is below this become zeros.
constexpr float kLeastScaled = 1e-30f;
constexpr Activations activations_of(DType t) {
  switch (t) {
    case DType::A8_32: return {32, 40, 8, 4, 32, 4};
    case DType::A8_ROW: return {64, 72, 8, 4, 64, 4, true};
    case DType::A8_256: return {256, 292, 4, 260, 16, 2};
    default: return {};
  }
}
constexpr bool is_activation(DType t) { return activations_of(t).block; }

inline float activation_scale(const uint8_t* block) {
  float scale;
  __builtin_memcpy(&scale, block, 4);
  return scale;
}
// The i-th sum of a block.
inline int32_t activation_sum(const Activations& a, const uint8_t* block, int i) {
  int32_t wide;
  int16_t narrow;
  __builtin_memcpy(&wide, block + a.sums + (a.sum_bytes == 4 ? 4 * i : 0), 4);
  __builtin_memcpy(&narrow, block + a.sums + (a.sum_bytes == 2 ? 2 * i : 0), 2);
  return a.sum_bytes == 4 ? wide : narrow;
}
// Writes a block with these codes and their sums.
inline void put_activations(const Activations& a, float scale, const int8_t* codes, uint8_t* block) {
  __builtin_memcpy(block, &scale, 4);
  __builtin_memcpy(block + a.codes, codes, size_t(a.block));
  for (int i = 0; i < a.block / a.sum_of; i++) {
    int32_t sum = 0;
    for (int j = 0; j < a.sum_of; j++) sum += codes[i * a.sum_of + j];
    const auto narrow = int16_t(sum);
    if (a.sum_bytes == 4) __builtin_memcpy(block + a.sums + 4 * i, &sum, 4);
    else __builtin_memcpy(block + a.sums + 2 * i, &narrow, 2);
  }
}

}  // namespace gimbal
