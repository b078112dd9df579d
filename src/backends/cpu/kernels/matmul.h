// The matrix product: a unit is a tile of 16 outputs, for all rows of x. One lane owns one output, so every
// instruction set adds the same numbers in the same order. Several rows of x share each load of the weights;
// they do not share sums, so the bits do not depend on how many there are.
#pragma once

#include "backends/cpu/kernels/memory.h"

constexpr int kRowsAtOnce = 4;  // of x

inline CpuWork matmul_work(const CpuTask& t) {
  return {(t.in[0]->dim[1] + 15) / 16, 2.0 * t.in[0]->dim[0] * t.in[0]->dim[1] * t.rows};
}

template <template <class, int> class Tile, class W, int M>
inline void matmul_rows(const CpuTask& t, int64_t unit, int32_t row) {
  const int32_t columns = t.in[0]->dim[0], outputs = t.in[0]->dim[1];
  constexpr gimbal::DTypeInfo activations = gimbal::info(W::x);
  const int64_t x_row = int64_t(columns / activations.block) * activations.bytes;
  const uint8_t* x[M];
  for (int m = 0; m < M; m++) x[m] = t.x[1] + (row + m) * x_row;
  F total[M];
  Tile<W, M>::tile(t.x[0] + unit * gimbal::cpu::tile_bytes(W::type, columns), x, columns, total);
  const int32_t first = int32_t(unit) * 16, n = outputs - first < 16 ? outputs - first : 16;
  for (int m = 0; m < M; m++) {
    if (t.op->inputs == 3)
      total[m] = add(total[m], load_part(reinterpret_cast<const float*>(t.x[2]) + first, n));
    store_part(reinterpret_cast<float*>(t.y) + int64_t(row + m) * outputs + first, total[m], n);
  }
}

template <template <class, int> class Tile, class W>
void matmul(const CpuTask& t, int64_t begin, int64_t end) {
  for (int64_t unit = begin; unit < end; unit++) {
    int32_t row = 0;
    for (; row + kRowsAtOnce <= t.rows; row += kRowsAtOnce) matmul_rows<Tile, W, kRowsAtOnce>(t, unit, row);
    for (; row < t.rows; row++) matmul_rows<Tile, W, 1>(t, unit, row);
  }
}
