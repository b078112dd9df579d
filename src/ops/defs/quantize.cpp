// quantize(x f32[k, R]) -> a8_32, a8_256 or a8_row [k, R]: int8 codes with a scale per block, or per row.
// Formats: tensor/activations.h.
#include <algorithm>
#include <cstring>

#include "ops/defs/parts.h"
#include "tensor/activations.h"

namespace gimbal::ops {

constinit const OpDef Quantize = {
    .inputs = {{"x", Role::Rows}},
    .integers = {"dtype"},
    .operations = 3,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const auto t = DType(c.params.i[0]);
      Shape out = c.in[0];
      if (!is_f32_rows(out)) return c.refuse("x must be f32 rows");
      if (!is_activation(t)) return c.refuse("activations are quantized to a8_32, a8_256 or a8_row");
      if (out.dim[0] % info(t).block) return c.refuse("a row of x is not a whole number of blocks");
      if (activations_of(t).scale_of_row && out.dim[0] > kMaxScaleOfRow)
        return c.refuse(
            format("a row of x has more than {} values, so sums of its codes are not exact", kMaxScaleOfRow));
      out.type = t;
      return out;
    },
};

constinit const OpCheck QuantizeCheck = {
    .named_by = kNamedByOutput,
    // Compared with the unquantized value; the error is at most half a step of the shared scale.
    .reference =
        [](const reference::Call& c) {
          const Activations a = activations_of(c.out.shape.type);
          const size_t n = a.scale_of_row ? size_t(c.out.shape.dim[0]) : size_t(a.block);
          for (size_t begin = 0; begin < c.computed; begin += n) {
            double largest = 0;
            for (size_t i = begin; i < begin + n; i++) largest = std::max(largest, std::fabs(c.x()[i]));
            for (size_t i = begin; i < begin + n; i++) c.put(i, c.x()[i], largest / 254);
          }
        },
    .tolerance = [](std::span<const Shape>) { return 1 + 8 * kRounding; },  // of half a step
    .cases =
        [](DType to) {
          return row_cases(OpKind::Quantize, to, [to](Case& c, int width, Numbers& n) {
            if (!is_activation(to) || width % info(to).block) return false;
            c.params.i[0] = int32_t(to);
            c.inputs = {rows_of(c, width, n)};
            // A block of zeros must give zeros.
            std::memset(c.inputs[0].dense.data(), 0, size_t(info(to).block) * 4);
            return true;
          });
        },
    .bench =
        [](DType to, int rows, int) {
          OpParams p;
          p.i[0] = int32_t(to);
          return bench_of_rows(1, rows, p);
        },
};

}  // namespace gimbal::ops
