// quantize(x f32[k, R]) -> a8_32 or a8_256 [k, R]: int8 codes with a scale per block. Formats:
// tensor/dtypes.def.
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
      if (!is_activation(t)) return c.refuse("activations are quantized to a8_32 or a8_256");
      if (out.dim[0] % info(t).block) return c.refuse("a row of x is not a whole number of blocks");
      out.type = t;
      return out;
    },
};

constinit const OpCheck QuantizeCheck = {
    .named_by = kNamedByOutput,
    // The meaning is the value itself; the rounding is bounded by half a step of the block.
    .reference =
        [](const reference::Call& c) {
          const auto n = size_t(info(c.out.shape.type).block);
          for (size_t i = 0; i < c.computed; i++) {
            double largest = 0;
            for (size_t j = i / n * n; j < i / n * n + n; j++)
              largest = std::max(largest, std::fabs(c.x()[j]));
            c.put(i, c.x()[i], largest / 254);
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
