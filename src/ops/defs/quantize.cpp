// quantize(x f32[k, R]) -> a8_32, a8_256 or a8_row [k, R]: int8 codes with a scale per block, or per row.
// Formats: tensor/activations.h.
#include <algorithm>
#include <cstring>

#include "ops/defs/parts.h"
#include "tensor/activations.h"

namespace gimbal::ops {
namespace {

// Blocks of zeros, of numbers around kLeastScaled and of subnormal ones, and values that are not finite, at
// the beginnings of rows: each where values share a scale of their own. One scale a row: in rows of their
// own.
void put_odd(DType to, CaseInput& in) {
  const int64_t width = in.shape.dim[0], block = info(to).block;
  const int64_t apart = activations_of(to).scale_of_row ? width : block;
  const auto change = [&](int64_t group, auto&& of) {
    for (int64_t i = group * apart; i < (group + 1) * apart; i++) {
      std::byte* at = &in.dense[size_t(i) * 4];
      const float v = of(i - group * apart, read_le<float>(at));
      std::memcpy(at, &v, 4);
    }
  };
  const int64_t groups = width * in.shape.dim[1] / apart;
  change(0, [&](int64_t i, float v) { return i < block ? 0.f : v; });
  if (groups < 4) return;
  change(1, [](int64_t i, float) { return i % 3 ? 0.9e-30f : -1e-38f; });  // zeros
  change(2, [](int64_t i, float v) { return i == 7 ? NAN : v; });
  if (groups < 8) return;
  change(3, [](int64_t i, float v) { return i == 9 ? -INFINITY : v; });
  change(4, [](int64_t i, float) { return i % 5 ? -1e-38f : 1.1e-30f; });
  change(5, [](int64_t i, float) { return i % 2 ? 1e-40f : -0.f; });
}

}  // namespace

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
    // Compared with the unquantized value; the error is at most half a step of the shared scale. Values that
    // are all below 1e-30 become zeros: the inverse of their scale would not be finite. A value that is not
    // finite makes all that share its scale NaN.
    .reference =
        [](const reference::Call& c) {
          const Activations a = activations_of(c.out.shape.type);
          const size_t n = a.scale_of_row ? size_t(c.out.shape.dim[0]) : size_t(a.block);
          for (size_t begin = 0; begin < c.computed; begin += n) {
            double largest = 0;
            bool finite = true;
            for (size_t i = begin; i < begin + n; i++)
              finite &= std::isfinite(c.x()[i]), largest = std::max(largest, std::fabs(c.x()[i]));
            for (size_t i = begin; i < begin + n; i++)
              if (!finite) c.put(i, NAN);
              else if (largest < double(kLeastScaled)) c.put(i, 0, 0);
              else c.put(i, c.x()[i], largest / 254);
          }
        },
    .tolerance = [](std::span<const Shape>) { return 1 + 8 * kRounding; },  // of half a step
    .cases =
        [](DType to) {
          return row_cases(OpKind::Quantize, to, [to](Case& c, int width, Numbers& n) {
            if (!is_activation(to) || width % info(to).block) return false;
            c.params.i[0] = int32_t(to);
            c.inputs = {rows_of(c, width, n)};
            put_odd(to, c.inputs[0]);
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
