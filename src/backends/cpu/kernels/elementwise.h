// The formulas of ops/elementwise.inc over vectors: a function elementwise_<id> for each of them. A unit is a
// row.
#pragma once

#include "backends/cpu/kernels/exp.h"
#include "backends/cpu/kernels/rows.h"
#include "ops/elementwise.inc"

// One value from one or two; with one input, both arguments of `each` are it. Shares: the second may have one
// value for each dim[0] of the first.
template <bool Shares, class Each>
inline void map_rows(const CpuTask& t, int64_t begin, int64_t end, Each each) {
  const int64_t width = width_of(*t.out), d = t.out->dim[0];
  const bool shared = Shares && t.in[1]->dim[0] != d;
  const int64_t run = shared ? d : width;
  for (int64_t row = begin; row < end; row++) {
    const float *a = row_of(t, 0, row, width),
                *b = row_of(t, t.op->inputs - 1, row, shared ? width / d : width);
    float* y = out_row(t, row, width);
    for (int64_t first = 0; first < width; first += run, a += run, y += run)
      for (int64_t i = 0; i < run; i += 16) {
        const int part = run - i < 16 ? int(run - i) : 16;
        const F second = shared ? splat(b[first / run]) : load_part(b + i, part);
        store_part(y + i, each(load_part(a + i, part), second), part);
      }
  }
}

#define NUMBER(v) splat(v)
#define PLUS(a, b) add(a, b)
#define MINUS(a, b) sub(a, b)
#define TIMES(a, b) mul(a, b)
#define OVER(a, b) div(a, b)
#define FUSED(a, b, c) fma(a, b, c)
#define EXP(a) exp(a)
#define POSITIVE(a) max(a, splat(0.f))
#define MOST(a, b) max(a, b)
#define LEAST(a, b) least(a, b)
#define SIZE(a) abs(a)
inline F least(F a, F b) {
  const F minus = splat(-1.f);
  return mul(max(mul(a, minus), mul(b, minus)), minus);
}
#define GIMBAL_ELEMENTWISE(number, id, ...)                                                       \
  inline void elementwise_##id(const CpuTask& t, int64_t begin, int64_t end) {                    \
    [[maybe_unused]] const F FACTOR = splat(float(t.op->param.f[0]));                             \
    map_rows<OpKind::id == OpKind::Mul>(t, begin, end,                                            \
                                        [=](F X, [[maybe_unused]] F Y) { return FORMULA_##id; }); \
  }
#include "ops/ops.def"
#undef NUMBER
#undef PLUS
#undef MINUS
#undef TIMES
#undef OVER
#undef FUSED
#undef EXP
#undef POSITIVE
#undef MOST
#undef LEAST
#undef SIZE
