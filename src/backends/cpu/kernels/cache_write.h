// Writing to a paged cache.
#pragma once

#include "backends/cpu/kernels/attention_page.h"

// How one head at one position, `at` in its page, is written to the head's part of the page.
template <class C>
inline void write_head(DType, const float* x, int32_t hd, bool is_key, int32_t at, uint8_t* page) {
  auto* y = reinterpret_cast<typename C::Element*>(page);
  const int64_t padded = gimbal::cpu::up(hd, 16);
  for (int32_t d = 0; d < hd; d++)
    y[is_key ? (at / 16 * hd + d) * 16 + at % 16 : at * padded + d] = C::from(x[d]);
}
template <DType T>
inline void write_head_blocks(DType, const float* x, int32_t hd, bool is_key, int32_t at, uint8_t* page) {
  constexpr int64_t tile = gimbal::cpu::cache_tile_bytes(T);
  write_blocks<T>(x, hd, is_key, at % 16, page + at / 16 * hd / 32 * tile);
}

using WriteHead = void (*)(DType, const float* x, int32_t hd, bool is_key, int32_t at, uint8_t* page);
template <WriteHead Write>
void cache_write(const CpuTask& t, int64_t begin, int64_t end) {
  const auto hd = int32_t(t.in[0]->dim[0]), heads = int32_t(t.in[0]->dim[1]);
  const bool is_key = t.op->param.i[0] != 0;
  const auto type = DType(t.in[0]->dtype);
  const int64_t head = head_bytes(*t.in[0]);
  const Pages pages = pages_of(t, 4);
  for (int64_t row = begin; row < end; row++) {
    const int32_t position = read<int32_t>(t.x[2] + 4 * row), sequence = read<int32_t>(t.x[3] + 4 * row),
                  at = position % kPagePositions;
    for (int32_t h = 0; h < heads; h++) {
      const float* x = reinterpret_cast<const float*>(t.x[1]) + (row * heads + h) * hd;
      Write(type, x, hd, is_key, at, t.y + (pages(sequence, position) * heads + h) * head);
    }
  }
}
inline CpuWork cache_write_work(const CpuTask& t) {
  return {t.rows, 2.0 * double(t.in[1]->dim[0] * t.in[1]->dim[1]) * t.rows};
}
