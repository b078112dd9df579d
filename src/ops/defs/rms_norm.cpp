// rms_norm(x[d, ...], weight[d]) -> x / sqrt(mean of x^2 + epsilon) * weight, for each d values.
#include "ops/defs/parts.h"

namespace gimbal::ops {

constinit const OpDef RmsNorm = {
    .inputs = {{"x", Role::Rows}, {"weight", Role::Weight}},
    .floats = {"epsilon"},
    .operations = 4,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &x = c.in[0], &weight = c.in[1];
      if (!is_f32(x) || !is_f32(weight)) return c.refuse("both must be f32");
      if (weight.rank != 1 || weight.dim[0] != x.dim[0])
        return c.refuse("the weight must have as many values as a row of x");
      return x;
    },
};

constinit const OpCheck RmsNormCheck = {
    .reference =
        [](const reference::Call& c) {
          const auto d = size_t(c.out.shape.dim[0]);
          for (size_t i = 0; i < c.computed; i += d) {
            double squares = 0;
            for (size_t j = 0; j < d; j++) squares += c.x()[i + j] * c.x()[i + j];
            const double scale = 1 / std::sqrt(squares / double(d) + c.params.f[0]);
            for (size_t j = 0; j < d; j++) c.put(i + j, c.x()[i + j] * scale * c.x(1)[j]);
          }
        },
    // Half of the sum's roundings: a square root halves relative errors.
    .tolerance = [](std::span<const Shape> in) { return (double(in[0].dim[0]) / 16 / 2 + 10) * kRounding; },
    .cases =
        [](DType x) {
          std::vector<Case> all;
          if (x != DType::F32) return all;
          for (float epsilon : {1e-6f, 1e-5f, 0.1f})
            for (Case& c : row_cases(OpKind::RmsNorm, x, [&](Case&c, int width, Numbers&n) {
                   c.name += format(" epsilon={}", epsilon);
                   c.params.f[0] = epsilon;
                   // One row with epsilon as large as the squares; several rows where it hardly matters.
                   c.inputs = {rows_of(c, width, n, c.rows == 1 ? std::sqrt(epsilon) : 30),
                               floats(Shape(x, {width}), n)};
                   return true;
                 }))
              all.push_back(std::move(c));
          // Values whose squares are far from 1. Of 1e-15 without an epsilon, lavapipe has other bits: there
          // the corrections of roots and divisions would be subnormal.
          for (auto [size, epsilon] : {std::pair(1e15f, 1e-6f), {1e-12f, 0.f}})
            for (Case& c : row_cases(OpKind::RmsNorm, x, [&](Case&c, int width, Numbers&n) {
                   c.name += format(" values of {}", size);
                   c.params.f[0] = epsilon;
                   c.inputs = {rows_of(c, width, n, size), floats(Shape(x, {width}), n)};
                   return true;
                 }))
              all.push_back(std::move(c));
          return all;
        },
    .bench =
        [](DType, int rows, int) {
          OpParams p;
          p.f[0] = 1e-5f;
          Bench b = bench_of_rows(1, rows, p);
          b.inputs.push_back({Shape(DType::F32, {kBenchWidth}), {}});
          return b;
        },
};

}  // namespace gimbal::ops
