// Ops that process each row alone: embedding, norm, quantization, rotation. A unit is a row.
// Sums over a row use 16 virtual lanes and one fixed tree.
#pragma once

#include "backends/cpu/kernels/memory.h"

inline const float* row_of(const CpuTask& t, int input, int64_t row, int64_t width) {
  return reinterpret_cast<const float*>(t.x[input]) + row * width;
}
inline float* out_row(const CpuTask& t, int64_t row, int64_t width) {
  return reinterpret_cast<float*>(t.y) + row * width;
}

// Values in one row of the output; all dimensions but the last.
inline int64_t width_of(const gimbal_value& v) {
  int64_t n = 1;
  for (int i = 0; i + 1 < v.rank; i++) n *= v.dim[i];
  return n;
}
template <int PerValue>
inline CpuWork row_work(const CpuTask& t) {
  return {t.rows, double(PerValue) * double(width_of(*t.out)) * t.rows};
}

template <int PerValue>  // of the input
inline CpuWork row_work_of_x(const CpuTask& t) {
  return {t.rows, double(PerValue) * double(width_of(*t.in[0])) * t.rows};
}

// ---- rms_norm
inline void rms_norm_one(const float* x, const float* w, float* y, int64_t n, float epsilon) {
  F squares = splat(0.f);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) squares = fma(load(x + i), load(x + i), squares);
  if (i < n) {
    F v = load_part(x + i, int(n - i));
    squares = fma(v, v, squares);
  }
  const F scale = splat(1.f / square_root(tree_sum(squares) / float(n) + epsilon));
  for (i = 0; i < n; i += 16) {
    const int part = n - i < 16 ? int(n - i) : 16;
    store_part(y + i, mul(mul(load_part(x + i, part), scale), load_part(w + i, part)), part);
  }
}
// ---- norm: n values at a time, each with its row of the weights
inline void norm_one(const float* x, const float* w, const float* b, float* y, int64_t n,
                     gimbal::NormKind kind, float epsilon) {
  using gimbal::NormKind;
  F middle = splat(0.f), scale = splat(1.f), sum = splat(0.f);
  if (kind == NormKind::Layer) {
    for (int64_t i = 0; i < n; i += 16) sum = add(sum, load_part(x + i, n - i < 16 ? int(n - i) : 16));
    middle = splat(tree_sum(sum) / float(n));
    sum = splat(0.f);
  }
  if (kind != NormKind::None) {
    for (int64_t i = 0; i < n; i += 16) {
      const int part = n - i < 16 ? int(n - i) : 16;
      const F v = keep(sub(load_part(x + i, part), middle), 0, part, 0.f);
      sum = fma(v, v, sum);
    }
    const float squares = tree_sum(sum);
    scale = splat(1.f / square_root((kind == NormKind::Length ? squares : squares / float(n)) + epsilon));
  }
  for (int64_t i = 0; i < n; i += 16) {
    const int part = n - i < 16 ? int(n - i) : 16;
    F v = mul(sub(load_part(x + i, part), middle), scale);
    if (w) v = mul(v, load_part(w + i, part));
    if (b) v = add(v, load_part(b + i, part));
    store_part(y + i, v, part);
  }
}
inline void norm(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t width = width_of(*t.out), n = t.in[0]->dim[0];
  const int64_t weights = t.op->inputs > 1 ? t.in[1]->dim[0] : n;
  const float* w = t.op->inputs > 1 ? reinterpret_cast<const float*>(t.x[1]) : nullptr;
  const float* b = t.op->inputs > 2 ? reinterpret_cast<const float*>(t.x[2]) : nullptr;
  for (int64_t row = begin; row < end; row++)
    for (int64_t at = 0; at < width; at += n) {
      const int64_t of = at % weights;
      norm_one(row_of(t, 0, row, width) + at, w ? w + of : w, b ? b + of : b, out_row(t, row, width) + at, n,
               gimbal::NormKind(t.op->param.i[0]), float(t.op->param.f[0]));
    }
}

// ---- slice, concat
inline void slice(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t d = t.in[0]->dim[0], n = t.out->dim[0], width = width_of(*t.out), heads = width / n;
  for (int64_t row = begin; row < end; row++)
    for (int64_t h = 0; h < heads; h++)
      __builtin_memcpy(out_row(t, row, width) + h * n,
                       row_of(t, 0, row, d * heads) + h * d + t.op->param.i[0], size_t(n) * 4);
}
inline void concat(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t m = t.in[0]->dim[0], n = t.in[1]->dim[0], width = width_of(*t.out), heads = width / (m + n),
                others = width_of(*t.in[1]) / n;
  for (int64_t row = begin; row < end; row++)
    for (int64_t h = 0; h < heads; h++) {
      float* y = out_row(t, row, width) + h * (m + n);
      __builtin_memcpy(y, row_of(t, 0, row, m * heads) + h * m, size_t(m) * 4);
      __builtin_memcpy(y + m, row_of(t, 1, row, n * others) + h % others * n, size_t(n) * 4);
    }
}

inline void rms_norm(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t width = width_of(*t.out), n = t.in[0]->dim[0];
  for (int64_t row = begin; row < end; row++)
    for (int64_t at = 0; at < width; at += n)
      rms_norm_one(row_of(t, 0, row, width) + at, reinterpret_cast<const float*>(t.x[1]),
                   out_row(t, row, width) + at, n, float(t.op->param.f[0]));
}

// ---- quantize: per block or row, scale = largest / 127, code = x * (127 / largest) rounded to even
struct CodeScale {
  float scale;    // 0 where all is 0, or too small to count; NaN where something is not finite
  float inverse;  // 0: all codes are 0
};
[[gnu::always_inline]] inline CodeScale scale_of(const float* x, int64_t n) {
  F largest = splat(0.f), check = splat(0.f);
  for (int64_t i = 0; i < n; i += 16) {
    F v = load(x + i);
    largest = max(largest, abs(v));
    check = fma(v, splat(0.f), check);  // NaN when anything is not finite
  }
  const float top = tree_max(largest);
  if (!(tree_sum(check) == 0)) return {__builtin_nanf(""), 0};
  if (!(top >= gimbal::kLeastScaled)) return {0, 0};
  return {top / 127.f, 127.f / top};
}
template <int N>
inline void put_codes(const float* x, CodeScale s, int8_t* codes) {
  for (int i = 0; i < N; i += 16)
    store_i8(codes + i,
             s.inverse != 0 ? to_int(round(mul(load(x + i), splat(s.inverse)))) : splat(int32_t(0)));
}
template <DType T>
inline void quantize(const CpuTask& t, int64_t begin, int64_t end) {
  constexpr gimbal::Activations to = gimbal::activations_of(T);
  const int64_t n = t.out->dim[0];
  for (int64_t row = begin; row < end; row++) {
    const float* x = row_of(t, 0, row, n);
    uint8_t* y = t.y + row * n / to.block * to.bytes;
    CodeScale s;
    if constexpr (to.scale_of_row) s = scale_of(x, n);
    for (int64_t b = 0; b < n / to.block; b++, x += to.block, y += to.bytes) {
      if constexpr (!to.scale_of_row) s = scale_of(x, to.block);
      auto* codes = reinterpret_cast<int8_t*>(y + to.codes);
      write(y, s.scale);
      put_codes<to.block>(x, s, codes);
      for (int i = 0; i < to.block; i += to.sum_of) {
        I all = load_i8(codes + i);
        for (int j = 16; j < to.sum_of; j += 16) all = add(all, load_i8(codes + i + j));
        if constexpr (to.sum_bytes == 4) write(y + to.sums + i / to.sum_of * 4, sum(all));
        else write(y + to.sums + i / to.sum_of * 2, int16_t(sum(all)));
      }
    }
  }
}

// ---- rope: pairs (a, b) -> (a cos - b sin, b cos + a sin), the table made by the host
inline void rope(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t hd = t.in[0]->dim[0], heads = t.in[0]->dim[1], rotated = t.in[1]->dim[0];
  const bool adjacent = gimbal::RopePairs(t.op->param.i[0]) == gimbal::RopePairs::Adjacent;
  const int64_t first = t.op->param.i[1];
  for (int64_t row = begin; row < end; row++) {
    const float* table = row_of(t, 1, row, rotated);
    for (int64_t h = 0; h < heads; h++) {
      const float* x = row_of(t, 0, row, hd * heads) + h * hd + first;
      float* y = out_row(t, row, hd * heads) + h * hd + first;
      for (int64_t p = 0; p < rotated / 2; p++) {
        const int64_t i = adjacent ? 2 * p : p, j = adjacent ? 2 * p + 1 : p + rotated / 2;
        const float c = table[2 * p], s = table[2 * p + 1], a = x[i], b = x[j];
        y[i] = a * c - b * s;
        y[j] = b * c + a * s;
      }
      for (int64_t d = -first; d < 0; d++) y[d] = x[d];
      for (int64_t d = rotated; d < hd - first; d++) y[d] = x[d];
    }
  }
}

// ---- hadamard: values at distance 1, 2, 4 .. of each run: (a, b) -> (a + b, a - b); then the factor
inline void hadamard(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t width = width_of(*t.out), n = t.op->param.i[0];
  const float factor = gimbal::hadamard_factor(n);
  for (int64_t row = begin; row < end; row++) {
    const float* x = row_of(t, 0, row, width);
    float* y = out_row(t, row, width);
    for (int64_t run = 0; run < width; run += n, x += n, y += n) {
      for (int64_t i = 0; i < n; i++) y[i] = x[i];
      for (int64_t at = 1; at < n; at *= 2)
        for (int64_t i = 0; i < n; i += 2 * at)
          for (int64_t j = i; j < i + at; j++) {
            const float a = y[j], b = y[j + at];
            y[j] = a + b, y[j + at] = a - b;
          }
      for (int64_t i = 0; i < n; i++) y[i] *= factor;
    }
  }
}

// ---- add_scaled
inline void add_scaled(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t width = width_of(*t.out);
  for (int64_t row = begin; row < end; row++) {
    const float *a = row_of(t, 0, row, width), *b = row_of(t, 1, row, width), s = *row_of(t, 2, row, 1);
    float* y = out_row(t, row, width);
    if (s == 0) {
      __builtin_memcpy(y, a, size_t(width) * 4);
      continue;
    }
    for (int64_t i = 0; i < width; i += 16) {
      const int part = width - i < 16 ? int(width - i) : 16;
      store_part(y + i, add(load_part(a + i, part), mul(load_part(b + i, part), splat(s))), part);
    }
  }
}

// ---- select_rows
inline void select_rows(const CpuTask& t, int64_t begin, int64_t end) {
  const int64_t width = width_of(*t.out), rows = t.in[0]->dim[t.in[0]->rank - 1];
  for (int64_t row = begin; row < end; row++) {
    int64_t from = read<int32_t>(t.x[1] + 4 * row);
    if (from < 0 || from >= rows) from = 0;
    __builtin_memcpy(out_row(t, row, width), row_of(t, 0, from, width), size_t(width) * 4);
  }
}
