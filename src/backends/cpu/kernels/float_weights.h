// Float weights against f32: one FMA per column, the chunk sums in order.
#pragma once

#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/kernels/memory.h"

template <DType T>
struct Numbers {
  static constexpr DType type = T, x = DType::F32;
  static constexpr int zero = 0;
  static constexpr bool two_streams = true;
  static inline F column(const uint8_t* w) {
    if constexpr (T == DType::F32) return load(reinterpret_cast<const float*>(w));
    else if constexpr (T == DType::F16) return load(reinterpret_cast<const uint16_t*>(w));
    else return load_bf16(reinterpret_cast<const uint16_t*>(w));
  }
  static inline float one(const uint8_t* p) {
    if constexpr (T == DType::F32) return read<float>(p);
    else if constexpr (T == DType::F16) return half_to_float(read<uint16_t>(p));
    else return bf16_to_float(read<uint16_t>(p));
  }
};

// Many rows: the columns as floats.
struct ProductOfFloats {
  using Staged = ProductOfFloats;
  struct Row {
    float x[kChunk];
  };
  struct Weights {
    const float* columns;  // `unpacked`, or where they lie in the tile
    alignas(64) float unpacked[kChunk][16];
  };
  static constexpr DType x = DType::F32;
  static constexpr int kRows = kStagedRows / 2;

  static void stage(const uint8_t* from, int32_t columns, int, Row& r) {
    __builtin_memcpy(r.x, from, size_t(columns) * 4);
  }
  template <int M>
  [[gnu::noinline]] static void product(const Weights* w, const Row* x, int32_t columns, float (*total)[16]) {
    constexpr int T = kTilesTogether;
    F acc[T * M];
    for (F& a : acc) a = splat(0.f);
    int32_t k = 0;
    do {
      F c[T];
      for (int t = 0; t < T; t++) c[t] = load(w[t].columns + 16 * k);
      for (int m = 0; m < M; m++) {
        const F a = splat(x[m].x[k]);
        for (int t = 0; t < T; t++) acc[t * M + m] = fma(c[t], a, acc[t * M + m]);
      }
    } while (++k < columns);
    for (int t = 0; t < T; t++)
      for (int m = 0; m < M; m++) {
        float* const to = total[t * kRows + m];
        store(to, add(load(to), acc[t * M + m]));
      }
  }
};
template <class W>
struct RowsOfFloats {
  using Product = ProductOfFloats;
  static void unpack(const uint8_t* tile, int32_t k, int32_t columns, ProductOfFloats::Weights& to) {
    const uint8_t* w = tile + kLayout<W::type>.chunk_offset(columns, k);
    if constexpr (W::type == DType::F32) {
      to.columns = reinterpret_cast<const float*>(w);
    } else {
      for (int32_t i = 0; i < columns - k && i < kChunk; i++) store(to.unpacked[i], W::column(w + 32 * i));
      to.columns = to.unpacked[0];
    }
  }
};

// With one row of x, the sum of a tile would wait for itself at every column: several tiles take turns.
template <class W>
struct OneRowOfFloats {
  template <int Tiles>
  static inline void tiles(const uint8_t* const (&tile)[Tiles], const uint8_t* x, int32_t columns,
                           F (&total)[Tiles]) {
    constexpr int64_t step = gimbal::info(W::type).bytes * 16;
    constexpr int kLine = int(64 / step ? 64 / step : 1);  // columns in a line of the cache
    for (F& t : total) t = splat(0.f);
    for (int32_t begin = 0; begin < columns; begin += kChunk) {
      const int32_t end = columns - begin < kChunk ? columns : begin + kChunk;
      F acc[Tiles];
      for (F& a : acc) a = splat(0.f);
      for (int32_t k = begin; k < end; k++) {
        const F one = splat(read<float>(x + 4 * k));
        for (int i = 0; i < Tiles; i++) {
          if (k % kLine == 0) fetch_ahead<64, 3>(tile[i] + k * step);
          acc[i] = fma(W::column(tile[i] + k * step), one, acc[i]);
        }
      }
      for (int i = 0; i < Tiles; i++) total[i] = add(total[i], acc[i]);
    }
  }
};
