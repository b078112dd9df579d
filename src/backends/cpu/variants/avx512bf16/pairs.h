// Functions for pairs of bf16 that vec.h lacks, with AVX-512 BF16. Meaning:
// variants/amxbf16_emulated/pairs.h.
#pragma once
#include <stdint.h>

#include "tensor/dtype.h"
#include "vec.h"

namespace CPU_VARIANT {
namespace {

inline void store_bf16(uint32_t* to, F first, F second) {
  _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(second.v, first.v));
}

template <gimbal::DType T>
inline void store_pairs(uint32_t* to, const uint8_t* first, const uint8_t* second) {
  // Value i of the first column beside value i of the second.
  const __m512i beside = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                          22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m256i a = half_register(first), b = half_register(second);
  __m512i both;
  if constexpr (T == gimbal::DType::BF16) both = _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
  else both = (__m512i)_mm512_cvtne2ps_pbh(_mm512_cvtph_ps(b), _mm512_cvtph_ps(a));
  _mm512_store_si512(to, _mm512_permutexvar_epi16(beside, both));
}

}  // namespace
}  // namespace CPU_VARIANT
