// The matrix product: a unit is a tile of 16 outputs, for all rows of x. One lane owns one output, so every
// instruction set adds the same numbers in the same order. Several rows of x share each load of the weights;
// they do not share sums, so the bits do not depend on how many there are.
#pragma once

#include "backends/cpu/kernels/memory.h"

inline CpuWork matmul_work(const CpuTask& t) {
  return {(t.in[0]->dim[1] + 15) / 16, 2.0 * t.in[0]->dim[0] * t.in[0]->dim[1] * t.rows};
}

template <class W>
inline const uint8_t* tile_at(const CpuTask& t, int64_t unit) {
  return t.x[0] + unit * gimbal::cpu::tile_bytes(W::type, t.in[0]->dim[0]);
}
template <class W>
inline const uint8_t* activations_at(const CpuTask& t, int64_t row) {
  constexpr gimbal::DTypeInfo x = gimbal::info(W::x);
  return t.x[1] + row * (t.in[0]->dim[0] / x.block * x.bytes);
}

// The bias, and the last tile's outputs that are not there.
inline void put(const CpuTask& t, int64_t unit, int64_t row, F total) {
  const int32_t outputs = t.in[0]->dim[1], first = int32_t(unit) * 16,
                n = outputs - first < 16 ? outputs - first : 16;
  if (t.op->inputs == 3) total = add(total, load_part(reinterpret_cast<const float*>(t.x[2]) + first, n));
  store_part(reinterpret_cast<float*>(t.y) + row * outputs + first, total, n);
}

// Rows from `row` on, M at a time; gives the first that is left.
template <template <class, int> class Tile, class W, int M>
inline int32_t rows_at_once(const CpuTask& t, int64_t unit, int32_t row) {
  for (; row + M <= t.rows; row += M) {
    const uint8_t* x[M];
    for (int m = 0; m < M; m++) x[m] = activations_at<W>(t, row + m);
    F total[M];
    Tile<W, M>::tile(tile_at<W>(t, unit), x, t.in[0]->dim[0], total);
    for (int m = 0; m < M; m++) put(t, unit, row + m, total[m]);
  }
  return row;
}

template <template <class, int> class Tile, class W>
void matmul(const CpuTask& t, int64_t begin, int64_t end) {
  for (int64_t unit = begin; unit < end; unit++) {
    int32_t row = rows_at_once<Tile, W, kRowsAtOnce>(t, unit, 0);
    if constexpr (kRowsAtOnce > 4) row = rows_at_once<Tile, W, 4>(t, unit, row);
    rows_at_once<Tile, W, 1>(t, unit, row);
  }
}
