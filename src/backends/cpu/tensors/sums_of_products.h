// Sums of products in rising order of k, one fused multiply-add for each, from +0: the tiles of product and
// conv. A work item is a tile of the output. Both operands are copied into panels as they are read: so
// strides, halves and windows cost little more, and no unfolded image is ever made. The sums of a block of
// rows and columns stay in registers; after kTileDepth steps of k they wait in the output.
#pragma once

#include "backends/cpu/tensors/view.h"

constexpr int64_t kTileDepth = 256;
#if defined(__AVX512F__)
constexpr int64_t kAtOnce = 12, kVectors = 2;  // rows, and vectors of 16 columns, that stay in registers
#else
constexpr int64_t kAtOnce = 6, kVectors = 1;
#endif
constexpr int64_t kPanel = 16 * kVectors;  // columns
constexpr int64_t kMostTileRows = 480, kMostTileColumns = 256, kFewestTileRows = 60, kHalfTileRows = 60;
constexpr int64_t kFewestTiles = 12;  // below, tiles get smaller, so that several threads have work

// 16 values as floats.
inline F load_values(const float* p) { return load(p); }
inline F load_values(const Half* p) { return load(&p->bits); }
inline F load_values(const Brain* p) { return load_bf16(&p->bits); }
template <class T>
inline void read_floats(const T* p, int64_t n, float* to) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(to + i, load_values(p + i));
  for (; i < n; i++) to[i] = value_of<float>(p[i]);
}

struct Tiles {
  int64_t rows, columns, batches, tile_rows, tile_columns, down, across;
  int64_t items() const { return down * across * batches; }
};
// `in_place`: the output is f32, and keeps the sums.
inline Tiles tiles_of(int64_t rows, int64_t columns, int64_t batches, bool in_place) {
  Tiles t{rows, columns, batches, in_place ? kMostTileRows : kHalfTileRows, kMostTileColumns, 0, 0};
  for (;;) {
    t.down = (rows + t.tile_rows - 1) / t.tile_rows,
    t.across = (columns + t.tile_columns - 1) / t.tile_columns;
    if (t.items() >= kFewestTiles) return t;
    if (t.tile_rows > kFewestTileRows) t.tile_rows /= 2;
    else if (t.tile_columns > 64) t.tile_columns /= 2;
    else return t;
  }
}

// `a` has a row of kTileDepth values for each row, `b` kPanel values for each k.
template <int64_t Rows>
inline void block_of_sums(const float* a, const float* b, int64_t depth, bool begin, float* sums,
                          int64_t stride) {
  F acc[Rows][kVectors];
  for (int64_t r = 0; r < Rows; r++)
    for (int64_t v = 0; v < kVectors; v++) acc[r][v] = begin ? splat(0.f) : load(sums + r * stride + 16 * v);
  for (int64_t k = 0; k < depth; k++) {
    F column[kVectors];
    for (int64_t v = 0; v < kVectors; v++) column[v] = load(b + k * kPanel + 16 * v);
    for (int64_t r = 0; r < Rows; r++) {
      const F row = splat(a[r * kTileDepth + k]);
      for (int64_t v = 0; v < kVectors; v++) acc[r][v] = fma(row, column[v], acc[r][v]);
    }
  }
  for (int64_t r = 0; r < Rows; r++)
    for (int64_t v = 0; v < kVectors; v++) store(sums + r * stride + 16 * v, acc[r][v]);
}
// The last rows: as sums of powers of two.
template <int64_t Rows>
inline void rest_of_sums(int64_t rows, const float* a, const float* b, int64_t depth, bool begin, float* sums,
                         int64_t stride) {
  if constexpr (Rows > 0) {
    if (rows & Rows) {
      block_of_sums<Rows>(a, b, depth, begin, sums, stride);
      a += Rows * kTileDepth, sums += Rows * stride;
    }
    rest_of_sums<Rows / 2>(rows, a, b, depth, begin, sums, stride);
  }
}
inline void strip_of_sums(int64_t rows, int64_t columns, const float* a, const float* b, int64_t depth,
                          bool begin, float* sums, int64_t stride) {
  alignas(64) float narrow[kAtOnce * kPanel];
  float* const outer = sums;
  const int64_t outer_stride = stride;
  if (columns < kPanel) {
    for (int64_t r = 0; r < rows && !begin; r++)
      __builtin_memcpy(narrow + r * kPanel, outer + r * outer_stride, size_t(columns) * 4);
    sums = narrow, stride = kPanel;
  }
  if (rows == kAtOnce) block_of_sums<kAtOnce>(a, b, depth, begin, sums, stride);
  else rest_of_sums<(kAtOnce > 8 ? 8 : 4)>(rows, a, b, depth, begin, sums, stride);
  for (int64_t r = 0; r < rows && columns < kPanel; r++)
    __builtin_memcpy(outer + r * outer_stride, narrow + r * kPanel, size_t(columns) * 4);
}

// Computes tiles [begin, end) of the dense output [batches, rows, columns]. fill_a(panel, batch, row, rows,
// k, depth) fills rows of kTileDepth values; fill_b(panel, batch, column, columns, k, depth) fills kPanel
// values for each k, the last of them with zeros.
template <class FillA, class FillB>
inline void compute_tiles(const Tiles& t, const View& out, int64_t depth, int64_t begin, int64_t end,
                          FillA fill_a, FillB fill_b) {
  alignas(64) float a[kAtOnce * kTileDepth], b[kTileDepth * kMostTileColumns],
      halves[kHalfTileRows * kMostTileColumns];
  const bool in_place = out.type == DType::F32;
  for (int64_t item = begin; item < end; item++) {
    const int64_t column = item % t.across * t.tile_columns, row = item / t.across % t.down * t.tile_rows,
                  batch = item / t.across / t.down;
    const int64_t columns = t.columns - column < t.tile_columns ? t.columns - column : t.tile_columns,
                  rows = t.rows - row < t.tile_rows ? t.rows - row : t.tile_rows;
    const int64_t place = (batch * t.rows + row) * t.columns + column;
    float* const sums = in_place ? reinterpret_cast<float*>(out.at(place)) : halves;
    const int64_t stride = in_place ? t.columns : kMostTileColumns;
    for (int64_t k = 0; k < depth; k += kTileDepth) {
      const int64_t part = depth - k < kTileDepth ? depth - k : kTileDepth;
      for (int64_t c = 0; c < columns; c += kPanel)
        fill_b(b + c * part, batch, column + c, columns - c < kPanel ? columns - c : kPanel, k, part);
      for (int64_t r = 0; r < rows; r += kAtOnce) {
        const int64_t some = rows - r < kAtOnce ? rows - r : kAtOnce;
        fill_a(a, batch, row + r, some, k, part);
        for (int64_t c = 0; c < columns; c += kPanel)
          strip_of_sums(some, columns - c < kPanel ? columns - c : kPanel, a, b + c * part, part, k == 0,
                        sums + r * stride + c, stride);
      }
    }
    for (int64_t r = 0; r < rows && !in_place; r++)
      put(out, place + r * t.columns, columns, halves + r * kMostTileColumns);
  }
}

// Copies `rows` x `depth` values: value k of row r lies at r * along + k * deep.
template <class T>
inline void fill_rows(float* panel, const T* from, int64_t rows, int64_t along, int64_t depth, int64_t deep) {
  if (deep == 1) {
    for (int64_t r = 0; r < rows; r++) read_floats(from + r * along, depth, panel + r * kTileDepth);
  } else {
    for (int64_t k = 0; k < depth; k++)
      for (int64_t r = 0; r < rows; r++)
        panel[r * kTileDepth + k] = value_of<float>(from[r * along + k * deep]);
  }
}
// Value i of k lies at i * along + k * deep.
template <class T>
inline void fill_columns(float* panel, const T* from, int64_t n, int64_t along, int64_t depth, int64_t deep) {
  if (along == 1 && n == kPanel) {
    for (int64_t k = 0; k < depth; k++)
      for (int64_t i = 0; i < kPanel; i += 16)
        store(panel + k * kPanel + i, load_values(from + k * deep + i));
    return;
  }
  for (int64_t k = 0; k < depth && n < kPanel; k++)
    __builtin_memset(panel + k * kPanel + n, 0, size_t(kPanel - n) * 4);
  if (deep == 1 && along != 1) {
    // 16 steps of k from each column: these stay in the L1 cache, whatever the columns' distance.
    for (int64_t first = 0; first < depth; first += 16)
      for (int64_t i = 0; i < n; i++) {
        const T* const p = from + i * along;
        for (int64_t k = first; k < depth && k < first + 16; k++)
          panel[k * kPanel + i] = value_of<float>(p[k]);
      }
  } else {
    for (int64_t k = 0; k < depth; k++)
      for (int64_t i = 0; i < n; i++) panel[k * kPanel + i] = value_of<float>(from[i * along + k * deep]);
  }
}
