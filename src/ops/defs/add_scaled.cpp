// add_scaled(a[d, ..., R], b, s f32[1, R]) -> a + b * s, row by row; a row whose s is 0 is a itself, bit for
// bit, whatever b is. The products of LoRA adapters have factors of their own for each row (model/lora.h).
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/defs/parts.h"

namespace gimbal::ops {
namespace {

void reference(const reference::Call& c) {
  const size_t width = size_t(c.out.shape.count() / c.out.shape.last());
  for (size_t i = 0; i < c.computed; i++) {
    const double s = c.x(2)[i / width];
    if (s == 0) c.put(i, c.x(0)[i], 0);  // no rounding is allowed
    else c.put(i, c.x(0)[i] + c.x(1)[i] * s, std::fabs(c.x(0)[i]) + std::fabs(c.x(1)[i] * s));
  }
}

void set(CaseInput& input, size_t i, float value) {
  std::memcpy(input.dense.data() + i * sizeof value, &value, sizeof value);
}

// Every second row has the factor 0, and no number in b.
std::vector<Case> cases_of(DType named) {
  return row_cases(OpKind::AddScaled, named, [named](Case& c, int width, Numbers& n) {
    if (named != DType::F32) return false;
    const int slots = width % 2 ? 1 : 3;
    c.name += format(" slots={}", slots);
    const Shape rows =
        slots > 1 ? Shape(DType::F32, {width, slots, c.capacity}) : Shape(DType::F32, {width, c.capacity});
    c.inputs = {floats(rows, n), floats(rows, n), rows_of(c, 1, n)};
    const size_t values = size_t(width) * size_t(slots);
    for (size_t row = size_t(c.rows > 1); row < size_t(c.capacity); row += 2) {
      set(c.inputs[2], row, 0);
      set(c.inputs[1], row * values, std::numeric_limits<float>::quiet_NaN());
      set(c.inputs[1], row * values + values - 1, std::numeric_limits<float>::infinity());
    }
    return true;
  });
}

}  // namespace

constinit const OpDef AddScaled = {
    .inputs = {{"a", Role::Rows}, {"b", Role::Rows}, {"s", Role::Rows}},
    .operations = 2,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &a = c.in[0], &s = c.in[2];
      if (!is_f32(a) || a.rank < 2 || c.in[1] != a)
        return c.refuse("a and b must be f32 rows of the same shape");
      if (!is_f32_rows(s) || s.dim[0] != 1 || s.dim[1] != a.dim[a.rank - 1])
        return c.refuse("s must be f32[1, rows], a factor for each row");
      return a;
    },
};
constinit const OpCheck AddScaledCheck = {
    .reference = reference,
    .tolerance = roundings<2>,
    .cases = cases_of,
    .bench =
        [](DType, int rows, int) {
          Bench b = bench_of_rows(2, rows);
          b.inputs.push_back({Shape(DType::F32, {1, rows}), {}});
          return b;
        },
};

}  // namespace gimbal::ops
