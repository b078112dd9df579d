// Decodes every weight format of model files to f32, as defined
// in quant/*.inc. This is the definition that all kernels are
// tested against; it is not written for speed.
#pragma once
#include <cstdint>

#include "tensor/format.h"

namespace gimbal {

// True for F32, F16, BF16 and every quantized weight format; false for integers, F64 and activation formats.
bool can_decode(DType type);

// Decodes n values from a block boundary on: out[0..n). n must be a multiple of the block and
// can_decode(type) true. `blocks` may have any alignment. Formats with one scale per tensor multiply each
// value by `tensor_scale`; the others ignore it.
void decode(DType type, const void* blocks, int64_t n, float* out, float tensor_scale = 1.0f);

// The scale after the n values of a tensor, in formats that have one; otherwise 1.
float tensor_scale(DType type, const void* data, int64_t n);

// Decodes a whole tensor of n values, including the scale after it where the format has one (row_bytes +
// tensor_tail_bytes bytes).
void decode_tensor(DType type, const void* data, int64_t n, float* out);

}  // namespace gimbal
