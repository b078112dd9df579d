// Stored weights as numbers: every format that a model file can carry, to f32, by the definitions in
// quant/*.inc. This is the meaning of a format and the measure of every kernel; speed is the kernels'
// business.
#pragma once
#include <cstdint>

#include "tensor/format.h"

namespace gimbal {

// True for F32, F16, BF16 and every quantized weight format; false for integers, F64 and activation formats.
bool can_decode(DType type);

// n values that start at a block boundary, as f32: out[0..n). n must be a multiple of the block and
// can_decode(type) true. `blocks` may have any alignment. Where a format has one scale for the tensor, each
// value is multiplied by `tensor_scale`, which the other formats do not read.
void decode(DType type, const void* blocks, int64_t n, float* out, float tensor_scale = 1.0f);

// The scale that lies behind the n values of a tensor, in formats that have one; 1 for every other format.
float tensor_scale(DType type, const void* data, int64_t n);

// A whole tensor of n values, with the scale behind it where the format has one (row_bytes +
// tensor_tail_bytes bytes).
void decode_tensor(DType type, const void* data, int64_t n, float* out);

}  // namespace gimbal
