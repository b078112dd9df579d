// Linear algebra in a fixed order: each value is reduced by its products in rising order, one fused
// multiply-add each (f64: product and sum rounded apart); see ops/defs/tensor_factors.cpp. Rows lie next to
// each other, so most work is a row plus a factor times another.
#pragma once

#include "backends/cpu/tensors/scalar.h"
#include "backends/cpu/tensors/view.h"

constexpr int64_t kColumnsAtOnce = 256;

// y[i] += factor * x[i]
inline void add_scaled(float* y, const float* x, float factor, int64_t n) {
  const F f = splat(factor);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, fma(f, load(x + i), load(y + i)));
  if (i < n)
    store_part(y + i, fma(f, load_part(x + i, int(n - i)), load_part(y + i, int(n - i))), int(n - i));
}
inline void add_scaled(double* y, const double* x, double factor, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = factor * x[i] + y[i];
}

// ---- a x = b. A work item is some columns of one b.
inline int64_t column_blocks(const CpuTask& t) {
  return (t.out->dim[0] + kColumnsAtOnce - 1) / kColumnsAtOnce;
}
inline int64_t outer_count(const gimbal_value& v) { return count_of(v) / v.dim[0] / v.dim[1]; }
inline CpuWork columns_to_solve(const CpuTask& t) {
  return {outer_count(*t.out) * column_blocks(t), double(count_of(*t.out)) * double(t.out->dim[1])};
}
template <class C>
inline void solve_as(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value &a = *t.in[0], &b = *t.in[1];
  const bool upper = t.op->param.i[0] != 0, unit = t.op->param.i[1] != 0;
  const int64_t m = t.out->dim[0], n = t.out->dim[1], blocks = column_blocks(t);
  const View outer_a = view_of(a, t.x[0], 2, a.rank - 2), outer_b = view_of(b, t.x[1], 2, b.rank - 2);
  for (int64_t item = begin; item < end; item++) {
    const int64_t batch = item / blocks, column = item % blocks * kColumnsAtOnce,
                  columns = m - column < kColumnsAtOnce ? m - column : kColumnsAtOnce;
    const C* p = reinterpret_cast<const C*>(t.x[0]) + offset_of(outer_a, batch);
    const C* q = reinterpret_cast<const C*>(t.x[1]) + offset_of(outer_b, batch) + column * b.stride[0];
    C* y = reinterpret_cast<C*>(t.y) + batch * n * m + column;
    for (int64_t step = 0; step < n; step++) {
      const int64_t i = upper ? n - 1 - step : step;
      C* row = y + i * m;
      for (int64_t c = 0; c < columns; c++) row[c] = q[i * b.stride[1] + c * b.stride[0]];
      for (int64_t j = upper ? i + 1 : 0; j < (upper ? n : i); j++)
        add_scaled(row, y + j * m, -p[i * a.stride[1] + j * a.stride[0]], columns);
      const C pivot = p[i * (a.stride[0] + a.stride[1])];
      for (int64_t c = 0; c < columns && !unit; c++) row[c] = row[c] / pivot;
    }
  }
}

// ---- cholesky, qr: a work item is a matrix
inline CpuWork matrices_to_factor(const CpuTask& t) {
  return {outer_count(*t.out), double(count_of(*t.out)) * double(t.out->dim[0])};
}

// u, with u^T u = a, row by row. From the first pivot on that is not above 0, NaN.
template <class C>
inline void cholesky_as(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value& a = *t.in[0];
  const int64_t n = t.out->dim[0];
  const View outer = view_of(a, t.x[0], 2, a.rank - 2);
  for (int64_t batch = begin; batch < end; batch++) {
    const C* p = reinterpret_cast<const C*>(t.x[0]) + offset_of(outer, batch);
    C* y = reinterpret_cast<C*>(t.y) + batch * n * n;
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) y[i * n + j] = j < i ? C(0) : p[i * a.stride[1] + j * a.stride[0]];
    for (int64_t k = 0; k < n; k++) {
      C* pivots = y + k * n;
      const C pivot = pivots[k] > C(0) ? root(pivots[k]) : C(__builtin_nan(""));
      pivots[k] = pivot;
      for (int64_t j = k + 1; j < n; j++) pivots[j] = pivots[j] / pivot;
      for (int64_t i = k + 1; i < n; i++) add_scaled(y + i * n + i, pivots + i, -pivots[i], n - i);
    }
  }
}

// A reflection H = 1 - factor * v v^T of rows j to m - 1, where v[j] = 1 and the others are column j of q.
template <class C>
struct Reflection {
  C* q;
  int64_t j, m, k;  // rows and columns of q
  C factor;

  C v(int64_t i) const { return q[i * k + j]; }
  // From v: so it is stored nowhere.
  static C factor_of(C squares) { return squares == C(0) ? C(0) : C(2) / (C(1) + squares); }
  C squares() const {
    C sum = C(0);
    for (int64_t i = j + 1; i < m; i++) sum = fused(v(i), v(i), sum);
    return sum;
  }
  // Of columns [first, end) of q. `top`: whether row j takes part, or is 0.
  void apply(int64_t first, int64_t end, bool top) const {
    C w[kColumnsAtOnce];
    for (int64_t at = first; at < end; at += kColumnsAtOnce) {
      const int64_t n = end - at < kColumnsAtOnce ? end - at : kColumnsAtOnce;
      for (int64_t c = 0; c < n; c++) w[c] = top ? q[j * k + at + c] : C(0);
      for (int64_t i = j + 1; i < m; i++) add_scaled(w, q + i * k + at, v(i), n);
      for (int64_t c = 0; c < n; c++) {
        w[c] = factor * w[c];
        q[j * k + at + c] = (top ? q[j * k + at + c] : C(0)) - w[c];
      }
      for (int64_t i = j + 1; i < m; i++) add_scaled(q + i * k + at, w, -v(i), n);
    }
  }
  void apply(C* column) const {
    C w = column[j];
    for (int64_t i = j + 1; i < m; i++) w = fused(v(i), column[i], w);
    w = factor * w;
    column[j] = column[j] - w;
    for (int64_t i = j + 1; i < m; i++) column[i] = fused(-w, v(i), column[i]);
  }
};

// Makes column j of q the vector of the reflection that leaves `beta` of it, which it returns.
template <class C>
inline C reflect_column(Reflection<C>& h) {
  const C squares = h.squares(), alpha = h.v(h.j);
  h.factor = C(0);
  if (squares == C(0)) return alpha;
  const C length = root(fused(alpha, alpha, squares)), beta = alpha > C(0) ? -length : length,
          first = alpha - beta;
  for (int64_t i = h.j + 1; i < h.m; i++) h.q[i * h.k + h.j] = h.v(i) / first;
  h.factor = h.factor_of(h.squares());
  return beta;
}

// By reflections, in the output: q[m, k], where the vectors lie at first, and then r^T[n, k].
template <class C>
inline void qr_as(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_value& a = *t.in[0];
  const int64_t n = a.dim[0], m = a.dim[1], k = t.out->dim[0];
  const View outer = view_of(a, t.x[0], 2, a.rank - 2);
  for (int64_t batch = begin; batch < end; batch++) {
    const C* p = reinterpret_cast<const C*>(t.x[0]) + offset_of(outer, batch);
    C *q = reinterpret_cast<C*>(t.y) + batch * k * (m + n), *r = q + m * k;
    for (int64_t i = 0; i < m; i++)
      for (int64_t c = 0; c < n; c++)
        (c < k ? q[i * k + c] : r[c * k + i]) = p[i * a.stride[1] + c * a.stride[0]];
    for (int64_t j = 0; j < k; j++) {
      Reflection<C> h{q, j, m, k, C(0)};
      r[j * k + j] = reflect_column(h);
      h.apply(j + 1, k, true);
      for (int64_t c = k; c < n; c++) h.apply(r + c * k);
    }
    for (int64_t i = 0; i < k; i++)
      for (int64_t c = i + 1; c < k; c++) r[c * k + i] = q[i * k + c], r[i * k + c] = q[i * k + c] = C(0);
    for (int64_t j = k; j-- > 0;) {
      Reflection<C> h{q, j, m, k, C(0)};
      h.factor = h.factor_of(h.squares());
      h.apply(j + 1, k, false);
      for (int64_t i = j + 1; i < m; i++) q[i * k + j] = -h.factor * h.v(i);
      q[j * k + j] = C(1) - h.factor;
    }
  }
}
