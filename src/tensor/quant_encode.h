// Encodes f32 values as blocks of every storage format. One text for the KV cache, tensors and quantized
// models; the same bytes from every compiler and on every machine.
#pragma once
#include <cstdint>
#include <functional>

#include "tensor/dtype.h"

namespace gimbal {

// True for every format that can_decode(), but I2_S and I2_S64.
bool can_encode(DType type);

// True for plain numbers, Q8_0, Q4_0 to Q5_1 and Q6_K: test data are made with these encoders, others take
// long.
bool encodes_fast(DType type);

// True for the formats of which ggml's quantizer makes nothing useful without importance: IQ1_S, IQ2_XXS,
// IQ2_XS.
bool wants_importance(DType type);

// Encodes n values into `blocks` (row_bytes(type, n) bytes, any alignment). n must be a
// multiple of the block and can_encode(type) true. Plain formats round to nearest even.
// Without importance, Q4_0, Q4_1, Q5_0, Q5_1, and with and without it Q8_0, TQ1_0, TQ2_0, MXFP4 and NVFP4
// equal ggml's reference quantizer bit for bit. All others seek the least sum of importance * error^2
// (importance 1 if it is nullptr; otherwise n weights, not negative). Any input is allowed: a block with NaN
// or infinity gets arbitrary codes, and NaN never wins a maximum.
void encode(DType type, const float* x, int64_t n, void* blocks, const float* importance = nullptr);

// Fills blocks of any decodable format with random codes and with
// scales that give values of about 1. Test weights of formats
// without an encoder are made this way. `next` returns random bits.
void random_blocks(DType type, int64_t n, void* blocks, const std::function<uint64_t()>& next);

}  // namespace gimbal
