// Functions for pairs of bf16 that vec.h lacks, in plain C++. A pair is one word, with the first value in its
// lower half.
#pragma once
#include <stdint.h>

#include "tensor/dtype.h"
#include "tensor/half.h"
#include "vec.h"

namespace CPU_VARIANT {
namespace {

inline uint16_t as_bf16(float x) {  // as the instruction has it: subnormal numbers count as 0
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  return bits & 0x7f800000 ? float_to_bf16(x) : uint16_t(bits >> 16 & 0x8000);
}

// 32 columns of a row, in their order.
inline void store_bf16(uint32_t* to, F first, F second) {
  for (int i = 0; i < 16; i++) {
    const F& f = i < 8 ? first : second;
    to[i] = as_bf16(f.v[2 * i % 16]) | uint32_t(as_bf16(f.v[2 * i % 16 + 1])) << 16;
  }
}

// Two columns of 16 outputs, 2 bytes each, in the file's format.
template <gimbal::DType T>
inline void store_pairs(uint32_t* to, const uint8_t* first, const uint8_t* second) {
  const auto value = [](const uint8_t* p) {
    uint16_t bits;
    __builtin_memcpy(&bits, p, 2);
    return T == gimbal::DType::BF16 ? bits : as_bf16(half_to_float(bits));
  };
  for (int i = 0; i < 16; i++) to[i] = value(first + 2 * i) | uint32_t(value(second + 2 * i)) << 16;
}

}  // namespace
}  // namespace CPU_VARIANT
