// The product by dot products of pairs (AVX-512 BF16): an instruction multiplies a pair of 16 outputs with a
// pair of x and adds both to 16 floats. A chunk's sum is added to the total as in exact rows. Subnormal
// numbers count as 0.
#pragma once

#include "backends/cpu/kernels/pairs.h"

struct ProductOfPairs : Pairs {
  using Staged = ProductOfPairs;
  template <int M>
  [[gnu::noinline]] static void product(const Weights* w, const Row* x, int32_t columns, float (*total)[16]) {
    constexpr int T = kTilesTogether;
    F acc[T * M];
    for (F& a : acc) a = splat(0.f);
    const int32_t pairs = (columns + 1) / 2;
    int32_t k = 0;
    do {
      __m512bh c[T];
      for (int t = 0; t < T; t++) c[t] = (__m512bh)_mm512_load_si512(w[t].columns[k]);
      for (int m = 0; m < M; m++) {
        const auto a = (__m512bh)_mm512_set1_epi32(int(x[m].x[k]));
        for (int t = 0; t < T; t++) acc[t * M + m].v = _mm512_dpbf16_ps(acc[t * M + m].v, c[t], a);
      }
    } while (++k < pairs);
    for (int t = 0; t < T; t++)
      for (int m = 0; m < M; m++) {
        float* const to = total[t * kRows + m];
        store(to, add(load(to), acc[t * M + m]));
      }
  }
};

template <DType T>
constexpr auto product_of_pairs = matmul_by_pairs<ProductOfPairs, T>;
