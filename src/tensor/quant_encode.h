// f32 values into stored formats: for the KV cache, for models made by tests, and nothing else (gimbal is no
// quantizer).
#pragma once
#include <cstdint>
#include <functional>

#include "tensor/dtype.h"

namespace gimbal {

// True for F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 and Q6_K.
bool can_encode(DType type);

// n values into the blocks at `blocks` (row_bytes(type, n) bytes, any alignment). n must be a multiple of the
// block and can_encode(type) true. Plain formats round to nearest even. Q8_0 .. Q5_1 follow the rule of
// ggml's reference quantizer to the bit; Q6_K takes for each group of 16 the smallest scale that covers it,
// without ggml's search. Any input is allowed: a block with NaN or infinity in it gets some codes, and NaN
// never wins a maximum.
void encode(DType type, const float* x, int64_t n, void* blocks);

// Random blocks of any format that can be decoded: every code occurs, and the scales are such that values
// have a size of about 1. For formats without an encoder, this is how test weights are made. `next` gives
// random bits.
void random_blocks(DType type, int64_t n, void* blocks, const std::function<uint64_t()>& next);

}  // namespace gimbal
