// Ops along the first dim of a view: softmax, normalize, cumsum. A work item is a row.
#pragma once

#include "backends/cpu/kernels/maps.h"
#include "backends/cpu/tensors/reduce.h"

inline CpuWork rows_along_first(const CpuTask& t) {
  const int64_t n = count_of(*t.out);
  return {n / t.out->dim[0], 20.0 * double(n)};
}

// A row of x as C: where it lies, or copied block by block. Calls each(values, n, first).
template <class C, class Each>
inline void for_row(const CpuTask& t, const View& x, int64_t row, Each each) {
  const int64_t n = t.out->dim[0];
  alignas(64) C room[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t part = n - i < kBlock ? n - i : kBlock;
    each(operand(x, row * n + i, part, room), part, i);
  }
}

// exp(x - m), of values at most m: of each in a block.
template <class C>
inline void exponentials(const C* x, int64_t n, C m, C* y) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i] - m;
  if constexpr (__is_same(C, float))
    map_kernels(int(gimbal::MapFunction::Exp))->f32(y, nullptr, nullptr, y, n);
  else map_kernels(int(gimbal::MapFunction::Exp))->f64(y, nullptr, nullptr, y, n);
}
template <class C>
inline C logarithm(C v) {
  if constexpr (__is_same(C, float))
    map_kernels(int(gimbal::MapFunction::Log))->f32(&v, nullptr, nullptr, &v, 1);
  else map_kernels(int(gimbal::MapFunction::Log))->f64(&v, nullptr, nullptr, &v, 1);
  return v;
}

template <class C>
inline void softmax_as(const CpuTask& t, int64_t begin, int64_t end) {
  const View x = input_view(t, 0), out = output_view(t);
  const int64_t width = t.out->dim[0];
  const bool logarithmic = t.op->param.i[0] != 0;
  alignas(64) C room[kBlock];
  for (int64_t row = begin; row < end; row++) {
    const C m = extreme<true, C>(x, row, width).value;
    const bool nothing = m == -C(__builtin_inf());  // a row of -infinity alone
    ChunkTree<Added<C>, C> tree;
    for_row<C>(t, x, row, [&](const C* v, int64_t n, int64_t) {
      exponentials(v, n, m, room);
      tree.add(chunk_of<Added<C>>(room, n));
    });
    const C sum = tree.total(), of_sum = logarithmic ? logarithm(sum) : C(0);
    for_row<C>(t, x, row, [&](const C* v, int64_t n, int64_t first) {
      C* y = result(out, row * width + first, room);
      if (nothing) {
        for (int64_t i = 0; i < n; i++) y[i] = logarithmic ? -C(__builtin_inf()) : C(0);
      } else if (logarithmic) {
        for (int64_t i = 0; i < n; i++) y[i] = (v[i] - m) - of_sum;
      } else {
        exponentials(v, n, m, y);
        for (int64_t i = 0; i < n; i++) y[i] = y[i] / sum;
      }
      put(out, row * width + first, n, y);
    });
  }
}

// (x - mean) * (1 / sqrt(var + epsilon)) * weight + bias; without the mean, the mean of the squares takes the
// place of var.
template <class C>
inline void normalize_as(const CpuTask& t, int64_t begin, int64_t end) {
  const View x = input_view(t, 0), out = output_view(t);
  const int64_t width = t.out->dim[0];
  const int inputs = t.op->inputs;
  const View w = inputs > 1 ? input_view(t, 1) : View{}, b = inputs > 2 ? input_view(t, 2) : View{};
  alignas(64) C room[kBlock], weights[kBlock], biases[kBlock];
  for (int64_t row = begin; row < end; row++) {
    C mean = C(0), square;
    if (t.op->param.i[0]) {
      mean = reduced<Added<C>, C>(x, row, width) / C(width);
      square = variance<C>(x, row, width);
    } else {
      ChunkTree<Added<C>, C> tree;
      for_row<C>(t, x, row, [&](const C* v, int64_t n, int64_t) {
        if constexpr (__is_same(C, float)) {
          tree.add(sum_of_squares(v, n, 0.f));
        } else {
          for (int64_t i = 0; i < n; i++) room[i] = v[i] * v[i];
          tree.add(chunk_of<Added<C>>(room, n));
        }
      });
      square = tree.total() / C(width);
    }
    const C scale = C(1) / root(square + C(t.op->param.f[0]));
    for_row<C>(t, x, row, [&](const C* v, int64_t n, int64_t first) {
      C* y = result(out, row * width + first, room);
      const C* weight = inputs > 1 ? operand(w, first, n, weights) : nullptr;
      const C* bias = inputs > 2 ? operand(b, first, n, biases) : nullptr;
      for (int64_t i = 0; i < n; i++) {
        C r = (v[i] - mean) * scale;
        if (weight) r = r * weight[i];
        y[i] = bias ? r + bias[i] : r;
      }
      put(out, row * width + first, n, y);
    });
  }
}

// Chunks of kSumChunk values: the prefix from +0, to which the total of the chunks before is added.
template <class C>
inline void cumsum_as(const CpuTask& t, int64_t begin, int64_t end) {
  const View x = input_view(t, 0), out = output_view(t);
  const int64_t width = t.out->dim[0];
  alignas(64) C room[kBlock];
  for (int64_t row = begin; row < end; row++) {
    C before = C(0);
    for_row<C>(t, x, row, [&](const C* v, int64_t n, int64_t first) {
      C* y = result(out, row * width + first, room);
      C sum = C(0);
      for (int64_t i = 0; i < n; i++) {
        sum = Added<C>::join(sum, v[i]);
        y[i] = first ? Added<C>::join(before, sum) : sum;
      }
      before = first ? Added<C>::join(before, sum) : sum;
      put(out, row * width + first, n, y);
    });
  }
}

// Each output: the sum over the taps, in order, each a fused multiply-add after the first product.
template <class C>
inline void resample_as(const CpuTask& t, int64_t begin, int64_t end) {
  const View out = output_view(t);
  const gimbal_value& x = *t.in[0];
  const View rows = view_of(x, t.x[0], 1, x.rank - 1);
  const int64_t taps = t.in[1]->dim[0], m = t.out->dim[0];
  const auto* ids = reinterpret_cast<const int32_t*>(t.x[1]);
  const auto* weights = reinterpret_cast<const C*>(t.x[2]);
  with_type_of<C>(rows.type, [&]<class T>(T*) {
    alignas(64) C room[kBlock];
    for (int64_t row = begin; row < end; row++) {
      const auto* p = reinterpret_cast<const T*>(rows.base) + offset_of(rows, row);
      for (int64_t first = 0; first < m; first += kBlock) {
        const int64_t n = m - first < kBlock ? m - first : kBlock;
        for (int64_t i = 0; i < n; i++) {
          C acc = C(0);
          for (int64_t k = 0; k < taps; k++) {
            const C v = value_of<C>(p[ids[(first + i) * taps + k] * x.stride[0]]);
            const C w = weights[(first + i) * taps + k];
            acc = k == 0 ? (taps == 1 ? v : w * v) : fused(w, v, acc);
          }
          room[i] = acc;
        }
        put(out, row * m + first, n, room);
      }
    }
  });
}
