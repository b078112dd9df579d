// The product of many rows with a tile of 16-bit floats, two columns at a time: an instruction multiplies a
// pair of bf16 of 16 outputs with a pair of x and adds both to 16 floats. Rows are staged, and tiles
// unpacked, as pairs; a chunk's sum is added to the total as in exact rows. Subnormal numbers count as 0.
#pragma once

#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/kernels/memory.h"

struct ProductOfPairs {
  using Staged = ProductOfPairs;
  struct Row {
    uint32_t x[kChunk / 2];
  };
  struct Weights {
    alignas(64) uint32_t columns[kChunk / 2][16];
  };
  static constexpr DType x = DType::F32;
  static constexpr int kRows = kStagedRows;

  static void stage(const uint8_t* from, int32_t columns, int, Row& r) {
    const auto* f = reinterpret_cast<const float*>(from);
    for (int32_t k = 0; k < columns; k += 32) {  // zeros behind the last column
      const F first = load_part(f + k, columns - k),
              second = columns - k > 16 ? load_part(f + k + 16, columns - k - 16) : splat(0.f);
      _mm512_storeu_si512(r.x + k / 2, (__m512i)_mm512_cvtne2ps_pbh(second.v, first.v));
    }
  }
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

// Columns k to k + 255 of a tile (fewer, where it ends): each is 16 values of 2 bytes, one per output.
template <DType T>
void unpack_pairs(const uint8_t* tile, int32_t k, int32_t columns, ProductOfPairs::Weights& to) {
  const uint8_t* w = tile + kLayout<T>.chunk_offset(columns, k);
  const int32_t width = columns - k < kChunk ? columns - k : kChunk;
  // Value i of the first column beside value i of the second.
  const __m512i beside = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                          22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  for (int32_t i = 0; i < width; i += 2, w += 64) {
    const __m256i first = half_register(w), second = i + 1 < width ? half_register(w + 32) : __m256i{};
    __m512i both;
    if constexpr (T == DType::BF16) both = _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
    else both = (__m512i)_mm512_cvtne2ps_pbh(_mm512_cvtph_ps(second), _mm512_cvtph_ps(first));
    _mm512_store_si512(to.columns[i / 2], _mm512_permutexvar_epi16(beside, both));
  }
}

template <DType T>
void matmul_by_pairs(const CpuTask& t, int64_t begin, int64_t end) {
  many_rows<ProductOfPairs>(t, begin, end, {kLayout<T>.tile_bytes(t.in[0]->dim[0]), unpack_pairs<T>, 0},
                            row_steps<ProductOfPairs>());
}
