// conv: sums of products, as product (sums_of_products.h). The rows are the outputs' channels, the columns
// the places of the window, k runs over (channel, row, column).
#pragma once

#include "backends/cpu/tensors/products.h"

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
inline Tiles tiles_of_window(const CpuTask& t, const Window& w) {
  return tiles_of(w.outputs / w.groups, w.out_x * w.out_y, w.groups * w.batch,
                  DType(t.out->dtype) == DType::F32);
}
inline double operations_of_conv(const CpuTask& t, const Window& w) {
  return 2.0 * double(count_of(*t.out)) * double(w.channels * w.kernel_x * w.kernel_y);
}
inline CpuWork tiles_of_conv(const CpuTask& t) {
  const Window w = window_of(t);
  return {tiles_of_window(t, w).items(), operations_of_conv(t, w)};
}
inline CpuWork wide_tiles_of_conv(const CpuTask& t) {
  const Window w = window_of(t);
  return {tiles_across(w.out_x * w.out_y) * tiles_down(w.outputs / w.groups) * w.groups * w.batch,
          operations_of_conv(t, w)};
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
  const int64_t outputs = w.outputs / w.groups;
  with_type_of<float>(DType(x.dtype), [&]<class T>(T*) {
    const auto *image = reinterpret_cast<const T*>(t.x[0]), *kernel = reinterpret_cast<const T*>(t.x[1]);
    compute_tiles(
        tiles_of_window(t, w), out, w.channels * w.kernel_x * w.kernel_y, begin, end,
        [&](float* panel, int64_t batch, int64_t row, int64_t rows, int64_t k, int64_t depth) {
          const int64_t first = batch % w.groups * outputs + row;
          for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < depth; i++)
              panel[r * kTileDepth + i] = value_of<float>(*kernel_at(w, v, kernel, first + r, k + i));
        },
        [&](float* panel, int64_t batch, int64_t column, int64_t columns, int64_t k, int64_t depth) {
          const T* from =
              image + batch / w.groups * x.stride[3] + batch % w.groups * w.channels * x.stride[2];
          for (int64_t i = 0; i < depth; i++) {
            window_row(w, x, from, k + i, column, columns, panel + i * kPanel);
            for (int64_t c = columns; c < kPanel; c++) panel[i * kPanel + c] = 0;
          }
        });
  });
}
inline void conv_f64(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value &x = *t.in[0], &v = *t.in[1];
  const Window w = window_of(t);
  const int64_t outputs = w.outputs / w.groups, places = w.out_x * w.out_y, across = tiles_across(places),
                down = tiles_down(outputs), depth = w.channels * w.kernel_x * w.kernel_y;
  auto* y = reinterpret_cast<double*>(t.y);
  for (int64_t item = begin; item < end; item++) {
    const int64_t column = item % across * kWideColumns, row = item / across % down * kWideRows,
                  batch = item / across / down;
    const int64_t n = places - column < kWideColumns ? places - column : kWideColumns;
    const double* from = reinterpret_cast<const double*>(t.x[0]) + batch / w.groups * x.stride[3] +
                         batch % w.groups * w.channels * x.stride[2];
    for (int64_t r = row; r < row + kWideRows && r < outputs; r++) {
      double sums[kWideColumns] = {}, values[kWideColumns];
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
