// product and conv: sums of products in rising order of k, one fused multiply-add for each, from +0. A work
// item is a tile of kTileRows x kTileColumns outputs. Both operands are copied into panels of the right order
// as they are read: so strides, halves and windows cost nothing more, and no unfolded image is ever made.
#pragma once

#include "backends/cpu/tensors/view.h"

constexpr int64_t kTileRows = 48, kTileColumns = 64, kTileDepth = 256;
#if defined(__AVX512F__)
constexpr int kAtOnce = 6, kVectors = 4;  // rows, and vectors of 16 columns, that stay in registers
#else
constexpr int kAtOnce = 6, kVectors = 1;
#endif

// The operands of a tile: a's panel has kTileRows values for each k, b's kTileColumns.
struct Panels {
  alignas(64) float a[kTileDepth * kTileRows];
  alignas(64) float b[kTileDepth * kTileColumns];
  alignas(64) float sums[kTileRows * kTileColumns];
};

template <int Rows, int Vectors>
inline void block_of_sums(const float* a, const float* b, int64_t depth, float* sums) {
  F acc[Rows][Vectors];
  for (int r = 0; r < Rows; r++)
    for (int v = 0; v < Vectors; v++) acc[r][v] = load(sums + r * kTileColumns + 16 * v);
  for (int64_t k = 0; k < depth; k++) {
    F column[Vectors];
    for (int v = 0; v < Vectors; v++) column[v] = load(b + k * kTileColumns + 16 * v);
    for (int r = 0; r < Rows; r++) {
      const F row = splat(a[k * kTileRows + r]);
      for (int v = 0; v < Vectors; v++) acc[r][v] = fma(row, column[v], acc[r][v]);
    }
  }
  for (int r = 0; r < Rows; r++)
    for (int v = 0; v < Vectors; v++) store(sums + r * kTileColumns + 16 * v, acc[r][v]);
}
inline void tile_of_sums(Panels& p, int64_t rows, int64_t columns, int64_t depth) {
  for (int64_t c = 0; c < columns; c += 16 * kVectors)
    for (int64_t r = 0; r < rows; r += kAtOnce)  // the panels are full, if need be of zeros
      block_of_sums<kAtOnce, kVectors>(p.a + r, p.b + c, depth, p.sums + r * kTileColumns + c);
}

struct Tiles {
  int64_t rows, columns, across, down, batches;
};
inline Tiles tiles_of(int64_t rows, int64_t columns, int64_t batches) {
  return {rows, columns, (columns + kTileColumns - 1) / kTileColumns, (rows + kTileRows - 1) / kTileRows,
          batches};
}

// Computes tiles [begin, end). fill_a(panel, batch, row, rows, k, depth) and fill_b(panel, batch, column,
// columns, k, depth) fill the panels; give(batch, row, column, columns, sums) takes a row of results.
template <class FillA, class FillB, class Give>
inline void compute_tiles(const Tiles& t, int64_t depth, int64_t begin, int64_t end, FillA fill_a,
                          FillB fill_b, Give give) {
  Panels p;
  for (int64_t item = begin; item < end; item++) {
    const int64_t column = item % t.across * kTileColumns, row = item / t.across % t.down * kTileRows,
                  batch = item / t.across / t.down;
    const int64_t columns = t.columns - column < kTileColumns ? t.columns - column : kTileColumns,
                  rows = t.rows - row < kTileRows ? t.rows - row : kTileRows;
    __builtin_memset(p.sums, 0, sizeof p.sums);
    for (int64_t k = 0; k < depth; k += kTileDepth) {
      const int64_t part = depth - k < kTileDepth ? depth - k : kTileDepth;
      fill_a(p.a, batch, row, rows, k, part);
      fill_b(p.b, batch, column, columns, k, part);
      tile_of_sums(p, rows, columns, part);
    }
    for (int64_t r = 0; r < rows; r++) give(batch, row + r, column, columns, p.sums + r * kTileColumns);
  }
}

// Copies `n` x `depth` values to a panel of `width` a k: value i of k lies at i * along + k * deep.
template <class T>
inline void fill_panel(float* panel, int64_t width, const T* from, int64_t n, int64_t along, int64_t depth,
                       int64_t deep) {
  if (deep == 1 && along != 1) {
    for (int64_t i = 0; i < n; i++)
      for (int64_t k = 0; k < depth; k++) panel[k * width + i] = value_of<float>(from[i * along + k]);
  } else {
    for (int64_t k = 0; k < depth; k++)
      for (int64_t i = 0; i < n; i++) panel[k * width + i] = value_of<float>(from[i * along + k * deep]);
  }
  for (int64_t k = 0; k < depth && n < width; k++)
    __builtin_memset(panel + k * width + n, 0, size_t(width - n) * 4);
}

inline int64_t batches_of(const gimbal_value& v) {
  int64_t n = 1;
  for (int i = 2; i < v.rank; i++) n *= v.dim[i];
  return n;
}
inline CpuWork tiles_of_product(const CpuTask& t) {
  const Tiles tiles = tiles_of(t.out->dim[1], t.out->dim[0], batches_of(*t.out));
  return {tiles.across * tiles.down * tiles.batches,
          2.0 * double(count_of(*t.out)) * double(t.in[0]->dim[0])};
}

inline void product_f32(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value &a = *t.in[0], &b = *t.in[1];
  const View outer_a = view_of(a, t.x[0], 2, a.rank - 2), outer_b = view_of(b, t.x[1], 2, b.rank - 2),
             out = output_view(t);
  with_type_of<float>(outer_a.type, [&]<class T>(T*) {
    compute_tiles(
        tiles_of(t.out->dim[1], t.out->dim[0], batches_of(*t.out)), a.dim[0], begin, end,
        [&](float* panel, int64_t batch, int64_t row, int64_t rows, int64_t k, int64_t depth) {
          const auto* from = reinterpret_cast<const T*>(t.x[0]) + offset_of(outer_a, batch) +
                             row * a.stride[1] + k * a.stride[0];
          fill_panel(panel, kTileRows, from, rows, a.stride[1], depth, a.stride[0]);
        },
        [&](float* panel, int64_t batch, int64_t column, int64_t columns, int64_t k, int64_t depth) {
          const auto* from = reinterpret_cast<const T*>(t.x[1]) + offset_of(outer_b, batch) +
                             column * b.stride[0] + k * b.stride[1];
          fill_panel(panel, kTileColumns, from, columns, b.stride[0], depth, b.stride[1]);
        },
        [&](int64_t batch, int64_t row, int64_t column, int64_t columns, const float* sums) {
          put(out, (batch * t.out->dim[1] + row) * t.out->dim[0] + column, columns, sums);
        });
  });
}
// f64: product and sum are rounded apart, since not every processor has a fused one.
inline void product_f64(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value &a = *t.in[0], &b = *t.in[1];
  const View outer_a = view_of(a, t.x[0], 2, a.rank - 2), outer_b = view_of(b, t.x[1], 2, b.rank - 2);
  const Tiles tiles = tiles_of(t.out->dim[1], t.out->dim[0], batches_of(*t.out));
  auto* y = reinterpret_cast<double*>(t.y);
  for (int64_t item = begin; item < end; item++) {
    const int64_t column = item % tiles.across * kTileColumns,
                  row = item / tiles.across % tiles.down * kTileRows,
                  batch = item / tiles.across / tiles.down;
    const auto* p = reinterpret_cast<const double*>(t.x[0]) + offset_of(outer_a, batch);
    const auto* q = reinterpret_cast<const double*>(t.x[1]) + offset_of(outer_b, batch);
    for (int64_t r = row; r < row + kTileRows && r < tiles.rows; r++) {
      double sums[kTileColumns] = {};
      const int64_t n = tiles.columns - column < kTileColumns ? tiles.columns - column : kTileColumns;
      for (int64_t k = 0; k < a.dim[0]; k++) {
        const double v = p[r * a.stride[1] + k * a.stride[0]];
        for (int64_t i = 0; i < n; i++) sums[i] += v * q[(column + i) * b.stride[0] + k * b.stride[1]];
      }
      __builtin_memcpy(y + (batch * tiles.rows + r) * tiles.columns + column, sums, size_t(n) * 8);
    }
  }
}

// ---- conv: the rows are the outputs' channels, the columns the places of the window, k runs over (channel,
// row, column)
struct Window {
  int64_t width, height, channels, kernel_x, kernel_y, outputs, groups, out_x, out_y, batch;
  int64_t stride_x, stride_y, pad_x, pad_y, dilate_x, dilate_y, up_x, up_y;
  bool flip;
};
inline Window window_of(const CpuTask& t) {
  const gimbal_value &x = *t.in[0], &w = *t.in[1];
  auto p = [&](gimbal::ConvParam which) { return t.op->param.i[int(which)]; };
  using enum gimbal::ConvParam;
  return {x.dim[0],   x.dim[1],   w.dim[2], w.dim[0],   w.dim[1],    w.dim[3], p(Groups),
          p(OutX),    p(OutY),    x.dim[3], p(StrideX), p(StrideY),  p(PadX),  p(PadY),
          p(DilateX), p(DilateY), p(UpX),   p(UpY),     p(Flip) != 0};
}
inline Tiles tiles_of_window(const Window& w) {
  return tiles_of(w.outputs / w.groups, w.out_x * w.out_y, w.groups * w.batch);
}
inline CpuWork tiles_of_conv(const CpuTask& t) {
  const Window w = window_of(t);
  const Tiles tiles = tiles_of_window(w);
  return {tiles.across * tiles.down * tiles.batches,
          2.0 * double(count_of(*t.out)) * double(w.channels * w.kernel_x * w.kernel_y)};
}
// The place in x of a place in the window; -1: padding, or a zero that was inserted.
inline int64_t place_in(int64_t out, int64_t kernel, int64_t stride, int64_t dilate, int64_t pad, int64_t up,
                        int64_t size) {
  const int64_t at = out * stride + kernel * dilate - pad;
  return at < 0 || at % up || at / up >= size ? -1 : at / up;
}
// Values of the window at places [column, column + n) of the output, for one k.
template <class C, class T>
inline void window_row(const Window& w, const gimbal_value& x, const T* from, int64_t k, int64_t column,
                       int64_t n, C* to) {
  const int64_t channel = k / (w.kernel_x * w.kernel_y), ky = k / w.kernel_x % w.kernel_y,
                kx = k % w.kernel_x;
  int64_t ox = column % w.out_x, oy = column / w.out_x;
  for (int64_t i = 0; i < n;) {
    const int64_t run = w.out_x - ox < n - i ? w.out_x - ox : n - i;
    const int64_t y = place_in(oy, ky, w.stride_y, w.dilate_y, w.pad_y, w.up_y, w.height);
    for (int64_t j = 0; j < run; j++) {
      const int64_t px = y < 0 ? -1 : place_in(ox + j, kx, w.stride_x, w.dilate_x, w.pad_x, w.up_x, w.width);
      to[i + j] =
          px < 0 ? C(0) : value_of<C>(from[channel * x.stride[2] + y * x.stride[1] + px * x.stride[0]]);
    }
    i += run, ox = 0, oy++;
  }
}
template <class T>
inline const T* kernel_at(const Window& w, const gimbal_value& v, const T* from, int64_t output, int64_t k) {
  int64_t ky = k / w.kernel_x % w.kernel_y, kx = k % w.kernel_x;
  const int64_t channel = k / (w.kernel_x * w.kernel_y);
  if (w.flip) ky = w.kernel_y - 1 - ky, kx = w.kernel_x - 1 - kx;
  return from + output * v.stride[3] + channel * v.stride[2] + ky * v.stride[1] + kx * v.stride[0];
}

inline void conv_f32(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value &x = *t.in[0], &v = *t.in[1];
  const Window w = window_of(t);
  const View out = output_view(t);
  const int64_t outputs = w.outputs / w.groups, places = w.out_x * w.out_y;
  with_type_of<float>(DType(x.dtype), [&]<class T>(T*) {
    const auto *image = reinterpret_cast<const T*>(t.x[0]), *kernel = reinterpret_cast<const T*>(t.x[1]);
    compute_tiles(
        tiles_of_window(w), w.channels * w.kernel_x * w.kernel_y, begin, end,
        [&](float* panel, int64_t batch, int64_t row, int64_t rows, int64_t k, int64_t depth) {
          const int64_t first = batch % w.groups * outputs + row;
          for (int64_t i = 0; i < depth; i++)
            for (int64_t r = 0; r < kTileRows; r++)
              panel[i * kTileRows + r] =
                  r < rows ? value_of<float>(*kernel_at(w, v, kernel, first + r, k + i)) : 0;
        },
        [&](float* panel, int64_t batch, int64_t column, int64_t columns, int64_t k, int64_t depth) {
          const T* from =
              image + batch / w.groups * x.stride[3] + batch % w.groups * w.channels * x.stride[2];
          for (int64_t i = 0; i < depth; i++) {
            window_row(w, x, from, k + i, column, columns, panel + i * kTileColumns);
            for (int64_t c = columns; c < kTileColumns; c++) panel[i * kTileColumns + c] = 0;
          }
        },
        [&](int64_t batch, int64_t row, int64_t column, int64_t columns, const float* sums) {
          put(out, (batch * outputs + row) * places + column, columns, sums);
        });
  });
}
inline void conv_f64(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value &x = *t.in[0], &v = *t.in[1];
  const Window w = window_of(t);
  const Tiles tiles = tiles_of_window(w);
  const int64_t outputs = w.outputs / w.groups, places = w.out_x * w.out_y,
                depth = w.channels * w.kernel_x * w.kernel_y;
  auto* y = reinterpret_cast<double*>(t.y);
  for (int64_t item = begin; item < end; item++) {
    const int64_t column = item % tiles.across * kTileColumns,
                  row = item / tiles.across % tiles.down * kTileRows,
                  batch = item / tiles.across / tiles.down;
    const int64_t n = tiles.columns - column < kTileColumns ? tiles.columns - column : kTileColumns;
    const double* from = reinterpret_cast<const double*>(t.x[0]) + batch / w.groups * x.stride[3] +
                         batch % w.groups * w.channels * x.stride[2];
    for (int64_t r = row; r < row + kTileRows && r < tiles.rows; r++) {
      double sums[kTileColumns] = {}, values[kTileColumns];
      for (int64_t k = 0; k < depth; k++) {
        window_row(w, x, from, k, column, n, values);
        const double factor =
            *kernel_at(w, v, reinterpret_cast<const double*>(t.x[1]), batch % w.groups * outputs + r, k);
        for (int64_t i = 0; i < n; i++) sums[i] += factor * values[i];
      }
      __builtin_memcpy(y + (batch * outputs + r) * places + column, sums, size_t(n) * 8);
    }
  }
}
