// What this backend computes, and how: every op by its definition in ops/reference.h, in double precision. A
// backend of yours has kernels here.
#pragma once
#include <vector>

#include "device/abi.h"

// Every backend has a namespace of its own, so that a copy of this folder can live beside it.
namespace gimbal::GIMBAL_BACKEND_NAME {

// The table of kernels: what is not in it, the engine does not ask for.
std::vector<gimbal_kernel_info> kernel_rows();

// Bytes of a KV cache, whatever its format: its values are kept as f32, which hold what every format holds.
uint64_t cache_bytes(int64_t head_dim, int64_t heads, int64_t page, int64_t pages);

// Computes the first `rows` rows of one op's output. `memory`: where each slot's buffer begins.
void compute(const gimbal_program&, const gimbal_op&, unsigned char* const* memory, int64_t rows);

}  // namespace gimbal::GIMBAL_BACKEND_NAME
