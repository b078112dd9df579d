// This backend's computation: every op by its reference (ops/reference.h), in double precision. A real
// backend has its kernels here.
#pragma once
#include <vector>

#include "device/abi.h"

// Every backend has its own namespace, so that a copy of this folder can coexist with it.
namespace gimbal::GIMBAL_BACKEND_NAME {

// The kernel table: the engine requests only the ops listed in it.
std::vector<gimbal_kernel_info> kernel_rows();

// Size of a KV cache in bytes. Values are stored as f32, which represents every cache format exactly.
uint64_t cache_bytes(int64_t head_dim, int64_t heads, int64_t page, int64_t pages);

// Computes the first `rows` rows of an op's output. `memory`: the start of each slot's buffer.
void compute(const gimbal_program&, const gimbal_op&, unsigned char* const* memory, int64_t rows);

}  // namespace gimbal::GIMBAL_BACKEND_NAME
