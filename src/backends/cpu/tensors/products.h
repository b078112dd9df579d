// product: sums of products in rising order of k. Few rows with a matrix whose columns are neighbours read it
// where it lies; all others go through the tiles of sums_of_products.h.
#pragma once

#include "backends/cpu/tensors/sums_of_products.h"

constexpr int64_t kFewRowsOfProduct = 8, kStrip = 512;  // columns of a work item with few rows

inline int64_t batches_of(const gimbal_value& v) {
  int64_t n = 1;
  for (int i = 2; i < v.rank; i++) n *= v.dim[i];
  return n;
}
inline bool few_rows(const CpuTask& t) {
  return t.out->dim[1] <= kFewRowsOfProduct && t.in[1]->stride[0] == 1 && t.out->dim[0] >= 16;
}
inline int64_t strips_of(const CpuTask& t) { return (t.out->dim[0] + kStrip - 1) / kStrip; }
inline Tiles tiles_of(const CpuTask& t) {
  return tiles_of(t.out->dim[1], t.out->dim[0], batches_of(*t.out), DType(t.out->dtype) == DType::F32);
}
inline double operations_of_product(const CpuTask& t) {
  return 2.0 * double(count_of(*t.out)) * double(t.in[0]->dim[0]);
}
inline CpuWork tiles_of_product(const CpuTask& t) {
  return {few_rows(t) ? strips_of(t) * batches_of(*t.out) : tiles_of(t).items(), operations_of_product(t)};
}

// Sums of `Rows` rows and `columns` columns over Depth steps of k: rows of b are read side by side, from
// begin to end.
template <int Rows, int Depth, class T>
inline void sums_of_few(const float* a, const T* b, int64_t row, int64_t columns, float* sums) {
  F factor[Rows][Depth];
  for (int r = 0; r < Rows; r++)
    for (int k = 0; k < Depth; k++) factor[r][k] = splat(a[r * kTileDepth + k]);
  auto add = [&](float* to, auto&& column) {
    F acc[Rows];
    for (int r = 0; r < Rows; r++) acc[r] = load(to + r * kStrip);
    for (int k = 0; k < Depth; k++) {
      const F v = column(k);
      for (int r = 0; r < Rows; r++) acc[r] = fma(factor[r][k], v, acc[r]);
    }
    for (int r = 0; r < Rows; r++) store(to + r * kStrip, acc[r]);
  };
  int64_t c = 0;
  for (; c + 16 <= columns; c += 16) add(sums + c, [&](int k) { return load_values(b + k * row + c); });
  if (c == columns) return;
  alignas(64) float last[Depth][16] = {};
  for (int k = 0; k < Depth; k++) read_floats(b + k * row + c, columns - c, last[k]);
  add(sums + c, [&](int k) { return load(last[k]); });
}
template <int Rows, int Depth, class T>
inline void strip_of_few(const float* a, const T* b, int64_t depth, int64_t row, int64_t columns,
                         float* sums) {
  int64_t k = 0;
  for (; k + Depth <= depth; k += Depth) sums_of_few<Rows, Depth>(a + k, b + k * row, row, columns, sums);
  for (; k < depth; k++) sums_of_few<Rows, 1>(a + k, b + k * row, row, columns, sums);
}

template <class T>
inline void few_rows_as(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value &a = *t.in[0], &b = *t.in[1];
  const View outer_a = view_of(a, t.x[0], 2, a.rank - 2), outer_b = view_of(b, t.x[1], 2, b.rank - 2),
             out = output_view(t);
  const int64_t strips = strips_of(t), rows = t.out->dim[1], columns = t.out->dim[0], depth = a.dim[0];
  alignas(64) float factors[4 * kTileDepth], sums[4 * kStrip];
  for (int64_t item = begin; item < end; item++) {
    const int64_t batch = item / strips, column = item % strips * kStrip,
                  n = columns - column < kStrip ? columns - column : kStrip;
    const auto* left = reinterpret_cast<const T*>(t.x[0]) + offset_of(outer_a, batch);
    const auto* right = reinterpret_cast<const T*>(t.x[1]) + offset_of(outer_b, batch) + column;
    for (int64_t r = 0; r < rows;) {
      const int64_t some = rows - r >= 4 ? 4 : rows - r >= 2 ? 2 : 1;
      __builtin_memset(sums, 0, sizeof sums);
      for (int64_t k = 0; k < depth; k += kTileDepth) {
        const int64_t part = depth - k < kTileDepth ? depth - k : kTileDepth, row = b.stride[1];
        fill_rows(factors, left + r * a.stride[1] + k * a.stride[0], some, a.stride[1], part, a.stride[0]);
        if (some == 4) strip_of_few<4, 4>(factors, right + k * row, part, row, n, sums);
        else if (some == 2) strip_of_few<2, 8>(factors, right + k * row, part, row, n, sums);
        else strip_of_few<1, 8>(factors, right + k * row, part, row, n, sums);
      }
      for (int64_t i = 0; i < some; i++)
        put(out, (batch * rows + r + i) * columns + column, n, sums + i * kStrip);
      r += some;
    }
  }
}

inline void product_f32(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value &a = *t.in[0], &b = *t.in[1];
  const View outer_a = view_of(a, t.x[0], 2, a.rank - 2), outer_b = view_of(b, t.x[1], 2, b.rank - 2),
             out = output_view(t);
  with_type_of<float>(outer_a.type, [&]<class T>(T*) {
    if (few_rows(t)) return few_rows_as<T>(t, begin, end);
    compute_tiles(
        tiles_of(t), out, a.dim[0], begin, end,
        [&](float* panel, int64_t batch, int64_t row, int64_t rows, int64_t k, int64_t depth) {
          const auto* from = reinterpret_cast<const T*>(t.x[0]) + offset_of(outer_a, batch) +
                             row * a.stride[1] + k * a.stride[0];
          fill_rows(panel, from, rows, a.stride[1], depth, a.stride[0]);
        },
        [&](float* panel, int64_t batch, int64_t column, int64_t columns, int64_t k, int64_t depth) {
          const auto* from = reinterpret_cast<const T*>(t.x[1]) + offset_of(outer_b, batch) +
                             column * b.stride[0] + k * b.stride[1];
          fill_columns(panel, from, columns, b.stride[0], depth, b.stride[1]);
        });
  });
}

constexpr int64_t kWideRows = 48, kWideColumns = 64;  // a tile of f64
inline int64_t tiles_across(int64_t columns) { return (columns + kWideColumns - 1) / kWideColumns; }
inline int64_t tiles_down(int64_t rows) { return (rows + kWideRows - 1) / kWideRows; }
inline CpuWork wide_tiles_of_product(const CpuTask& t) {
  return {tiles_across(t.out->dim[0]) * tiles_down(t.out->dim[1]) * batches_of(*t.out),
          operations_of_product(t)};
}
// f64: product and sum are rounded apart, since not every processor has a fused one.
inline void product_f64(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value &a = *t.in[0], &b = *t.in[1];
  const View outer_a = view_of(a, t.x[0], 2, a.rank - 2), outer_b = view_of(b, t.x[1], 2, b.rank - 2);
  const int64_t rows = t.out->dim[1], columns = t.out->dim[0], across = tiles_across(columns),
                down = tiles_down(rows);
  auto* y = reinterpret_cast<double*>(t.y);
  for (int64_t item = begin; item < end; item++) {
    const int64_t column = item % across * kWideColumns, row = item / across % down * kWideRows,
                  batch = item / across / down;
    const auto* p = reinterpret_cast<const double*>(t.x[0]) + offset_of(outer_a, batch);
    const auto* q = reinterpret_cast<const double*>(t.x[1]) + offset_of(outer_b, batch);
    for (int64_t r = row; r < row + kWideRows && r < rows; r++) {
      double sums[kWideColumns] = {};
      const int64_t n = columns - column < kWideColumns ? columns - column : kWideColumns;
      for (int64_t k = 0; k < a.dim[0]; k++) {
        const double v = p[r * a.stride[1] + k * a.stride[0]];
        for (int64_t i = 0; i < n; i++) sums[i] += v * q[(column + i) * b.stride[0] + k * b.stride[1]];
      }
      __builtin_memcpy(y + (batch * rows + r) * columns + column, sums, size_t(n) * 8);
    }
  }
}
