// The product of tiles of bf16 pairs as Intel's manual defines it, beside the other tile instructions.
#pragma once
#include "backends/cpu/variants/amx_emulated/tile.h"
#include "tensor/half.h"
#include "vec.h"

namespace CPU_VARIANT {
namespace {

inline float of_pair(const uint8_t* pair, int half) {
  uint16_t bits;
  __builtin_memcpy(&bits, pair + 2 * half, 2);
  return bits & 0x7f80 ? bf16_to_float(bits) : 0.f;
}
inline float without_subnormal(float x) { return __builtin_bit_cast(uint32_t, x) & 0x7f800000 ? x : 0.f; }
// TDPBF16PS: the first halves of pairs and the second ones are added up apart, by FMA from 0; then Sum += the
// first + the second. Subnormal numbers count as 0.
template <int Sum, int A, int B>
inline void multiply_pairs() {
  fault_unless_they_fit<Sum, A, B>();
  for (int m = 0; m < rows_of(Sum); m++)
    for (int n = 0; n < bytes_of(Sum) / 4; n++) {
      float half[2] = {0, 0}, sum;
      for (int k = 0; k < rows_of(B); k++)
        for (int j = 0; j < 2; j++)
          half[j] = without_subnormal(fma1(of_pair(tiles_of_thread.row[A][m] + 4 * k, j),
                                           of_pair(tiles_of_thread.row[B][k] + 4 * n, j), half[j]));
      __builtin_memcpy(&sum, tiles_of_thread.row[Sum][m] + 4 * n, 4);
      sum = without_subnormal(sum + without_subnormal(half[0] + half[1]));
      __builtin_memcpy(tiles_of_thread.row[Sum][m] + 4 * n, &sum, 4);
    }
}

}  // namespace
}  // namespace CPU_VARIANT
