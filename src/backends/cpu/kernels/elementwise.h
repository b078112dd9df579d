// The formulas of ops/elementwise.inc over vectors: a function elementwise_<id> for each of them. A unit is a
// row.
#pragma once

#include "backends/cpu/kernels/exp.h"
#include "backends/cpu/kernels/rows.h"
#include "ops/elementwise.inc"

// One value from one or two; with one input, both arguments of `each` are it.
template <class Each>
inline void map_rows(const CpuTask& t, int64_t begin, int64_t end, Each each) {
  const int64_t width = width_of(*t.out);
  for (int64_t row = begin; row < end; row++) {
    const float *a = row_of(t, 0, row, width), *b = row_of(t, t.op->inputs - 1, row, width);
    float* y = out_row(t, row, width);
    for (int64_t i = 0; i < width; i += 16) {
      const int part = width - i < 16 ? int(width - i) : 16;
      store_part(y + i, each(load_part(a + i, part), load_part(b + i, part)), part);
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
#define GIMBAL_ELEMENTWISE(number, id, ...)                                           \
  inline void elementwise_##id(const CpuTask& t, int64_t begin, int64_t end) {        \
    [[maybe_unused]] const F FACTOR = splat(float(t.op->param.f[0]));                 \
    map_rows(t, begin, end, [=](F X, [[maybe_unused]] F Y) { return FORMULA_##id; }); \
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
