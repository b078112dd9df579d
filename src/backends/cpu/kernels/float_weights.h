// Float weights against f32: one FMA per column, the chunk sums in order.
#pragma once

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

template <class W>
inline void columns_row(const uint8_t* w, int lane, int32_t columns, float* y) {
  constexpr int64_t bytes = gimbal::info(W::type).bytes;
  for (int32_t k = 0; k < columns; k++) y[k] = W::one(w + (16 * k + lane) * bytes);
}
