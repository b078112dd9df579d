// Float weights against f32: one FMA per column, the chunk sums in order.
#pragma once

#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/kernels/memory.h"

struct F32 {
  static constexpr DType type = DType::F32, x = DType::F32;
  static inline F column(const uint8_t* w) { return load(reinterpret_cast<const float*>(w)); }
  static inline float one(const uint8_t* p) { return read<float>(p); }
};
struct F16 {
  static constexpr DType type = DType::F16, x = DType::F32;
  static inline F column(const uint8_t* w) { return load(reinterpret_cast<const uint16_t*>(w)); }
  static inline float one(const uint8_t* p) { return half_to_float(read<uint16_t>(p)); }
};
struct BF16 {
  static constexpr DType type = DType::BF16, x = DType::F32;
  static inline F column(const uint8_t* w) { return load_bf16(reinterpret_cast<const uint16_t*>(w)); }
  static inline float one(const uint8_t* p) { return bf16_to_float(read<uint16_t>(p)); }
};

template <class W, int M>
struct Columns {
  static void tile(const uint8_t* w, const uint8_t* const* x, int32_t columns, F* total) {
    constexpr int64_t step = gimbal::info(W::type).bytes * 16;
    for (int m = 0; m < M; m++) total[m] = splat(0.f);
    for (int32_t begin = 0; begin < columns; begin += kChunk) {
      const int32_t end = columns - begin < kChunk ? columns : begin + kChunk;
      F acc[M];
      for (int m = 0; m < M; m++) acc[m] = splat(0.f);
      for (int32_t k = begin; k < end; k++, w += step) {
        F c = W::column(w);
        for (int m = 0; m < M; m++) acc[m] = fma(c, splat(read<float>(x[m] + 4 * k)), acc[m]);
      }
      for (int m = 0; m < M; m++) total[m] = add(total[m], acc[m]);
    }
  }
};

// With one row of x, the sum of a tile would wait for itself at every column: several tiles take turns.
template <class W, int Tiles>
inline int64_t tiles_in_turn(const CpuTask& t, int64_t unit, int64_t end) {
  constexpr int64_t step = gimbal::info(W::type).bytes * 16;
  const int32_t columns = t.in[0]->dim[0];
  const uint8_t* x = activations_at<W>(t, 0);
  for (; unit + Tiles <= end; unit += Tiles) {
    const uint8_t* w[Tiles];
    F total[Tiles];
    for (int i = 0; i < Tiles; i++) w[i] = tile_at<W>(t, unit + i), total[i] = splat(0.f);
    for (int32_t begin = 0; begin < columns; begin += kChunk) {
      const int32_t end_of_chunk = columns - begin < kChunk ? columns : begin + kChunk;
      F acc[Tiles];
      for (int i = 0; i < Tiles; i++) acc[i] = splat(0.f);
      for (int32_t k = begin; k < end_of_chunk; k++) {
        const F one = splat(read<float>(x + 4 * k));
        for (int i = 0; i < Tiles; i++) acc[i] = fma(W::column(w[i] + k * step), one, acc[i]);
      }
      for (int i = 0; i < Tiles; i++) total[i] = add(total[i], acc[i]);
    }
    for (int i = 0; i < Tiles; i++) put(t, unit + i, 0, total[i]);
  }
  return unit;
}
template <class W>
void matmul_columns(const CpuTask& t, int64_t begin, int64_t end) {
  if (t.rows == 1) begin = tiles_in_turn<W, 4>(t, begin, end);
  matmul<Columns, W>(t, begin, end);
}

template <class W>
inline void columns_row(const uint8_t* w, int lane, int32_t columns, float* y) {
  constexpr int64_t bytes = gimbal::info(W::type).bytes;
  for (int32_t k = 0; k < columns; k++) y[k] = W::one(w + (16 * k + lane) * bytes);
}
