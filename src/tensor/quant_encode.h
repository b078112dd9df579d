// Encodes f32 values, only for the KV cache and for models made
// by tests (gimbal does not quantize models).
#pragma once
#include <cstdint>
#include <functional>

#include "tensor/dtype.h"

namespace gimbal {

// True for F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 and Q6_K.
bool can_encode(DType type);

// Encodes n values into `blocks` (row_bytes(type, n) bytes, any alignment). n must be a
// multiple of the block and can_encode(type) true. Plain formats round to nearest even.
// Q8_0 to Q5_1 equal ggml's reference quantizer bit for bit; Q6_K takes the smallest
// covering scale for each group of 16, without ggml's search. Any input is allowed: a
// block with NaN or infinity gets arbitrary codes, and NaN never wins a maximum.
void encode(DType type, const float* x, int64_t n, void* blocks);

// Fills blocks of any decodable format with random codes and with
// scales that give values of about 1. Test weights of formats
// without an encoder are made this way. `next` returns random bits.
void random_blocks(DType type, int64_t n, void* blocks, const std::function<uint64_t()>& next);

}  // namespace gimbal
