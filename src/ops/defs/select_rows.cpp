// select_rows(x[d, R], rows i32[O]) -> f32[d, O]: copies of some rows.
#include "ops/defs/parts.h"

namespace gimbal::ops {

constinit const OpDef SelectRows = {
    .inputs = {{"x", Role::Whole}, {"rows", Role::Rows}},
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      if (!is_f32_rows(c.in[0]) || !is_index_row(c.in[1]))
        return c.refuse("x must be f32 rows, the row numbers i32");
      return Shape(DType::F32, {c.in[0].dim[0], c.in[1].dim[0]});
    },
    .cost = [](Cost& c, std::span<const Shape>, const Shape& out,
               int64_t) { c.bytes_read = double(out.bytes()); },
};

constinit const OpCheck SelectRowsCheck = {
    .reference =
        [](const reference::Call& c) {
          const auto d = size_t(c.out.shape.dim[0]);
          for (size_t i = 0; i < c.computed; i++) c.put(i, c.x(0)[size_t(c.x(1)[i / d]) * d + i % d], 0);
        },
    .tolerance = roundings<0>,
    .cases =
        [](DType x) {
          return row_cases(OpKind::SelectRows, x, [x](Case& c, int width, Numbers& n) {
            if (x != DType::F32) return false;
            std::vector<int32_t> which;
            for (int r = 0; r < c.capacity; r++) which.push_back(c.capacity - 1 - r);
            c.inputs = {rows_of(c, width, n), integers(Shape(DType::I32, {c.capacity}), which)};
            return true;
          });
        },
    .bench =
        [](DType, int rows, int) {
          Bench b = bench_of_rows(1, rows);
          b.inputs.push_back(bench_integers(rows, rows - 1, -1, rows));
          return b;
        },
};

}  // namespace gimbal::ops
