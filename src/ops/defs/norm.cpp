// norm(x[d, ...], weight, bias) -> as x: normalizes each d values as NormKind states, times the weight, plus
// the bias. Weight and bias have d values, or one row of d per index of x's second dimension: heads with
// weights of their own.
#include "ops/defs/parts.h"

namespace gimbal::ops {
namespace {

void normalize(const reference::Call& c) {
  const auto d = size_t(c.out.shape.dim[0]);
  const NormKind kind{int32_t(c.params.i[0])};
  const double epsilon = c.params.f[0];
  for (size_t i = 0; i < c.computed; i += d) {
    double mean = 0, size = 0, squares = 0;  // size: magnitude of the mean's summands
    if (kind == NormKind::Layer)
      for (size_t j = 0; j < d; j++)
        mean += c.x()[i + j] / double(d), size += std::fabs(c.x()[i + j]) / double(d);
    for (size_t j = 0; j < d; j++) squares += (c.x()[i + j] - mean) * (c.x()[i + j] - mean);
    const double scale = kind == NormKind::None     ? 1
                         : kind == NormKind::Length ? 1 / std::sqrt(squares + epsilon)
                                                    : 1 / std::sqrt(squares / double(d) + epsilon);
    for (size_t j = 0; j < d; j++) {
      const size_t at = c.in.size() > 1 ? (i + j) % c.x(1).size() : 0;
      const double weight = c.in.size() > 1 ? c.x(1)[at] : 1, bias = c.in.size() > 2 ? c.x(2)[at] : 0;
      const double y = (c.x()[i + j] - mean) * scale * weight;
      c.put(i + j, y + bias, std::fabs(y) + size * scale * std::fabs(weight) + std::fabs(bias));
    }
  }
}

struct Form {
  NormKind kind;
  int vectors;  // 0: none, 1: weight, 2: weight and bias
  bool by_head;
  float epsilon;
};
constexpr Form kForms[] = {{NormKind::Layer, 2, false, 1e-5f}, {NormKind::Layer, 0, false, 0.1f},
                           {NormKind::Layer, 1, true, 1e-5f},  {NormKind::Rms, 0, false, 1e-6f},
                           {NormKind::Rms, 2, true, 0.1f},     {NormKind::Length, 0, false, 1e-6f},
                           {NormKind::None, 1, true, 0},       {NormKind::None, 2, false, 0}};

std::vector<Case> norm_cases(DType x) {
  std::vector<Case> all;
  if (x != DType::F32) return all;
  for (const Form& f : kForms)
    for (Case& c : row_cases(OpKind::Norm, x, [&](Case&c, int width, Numbers&n) {
           if (width > 256 && f.by_head) return false;
           const int heads = f.by_head ? 3 : 1;
           c.name += format(" kind={} vectors={} heads={}", int(f.kind), f.vectors, heads);
           c.params.f[0] = f.epsilon, c.params.i[0] = int(f.kind);
           c.inputs = {floats(Shape(x, {width, heads, c.capacity}), n)};
           for (int i = 0; i < f.vectors; i++) c.inputs.push_back(floats(Shape(x, {width * heads}), n));
           return true;
         }))
      all.push_back(std::move(c));
  return all;
}

}  // namespace

constinit const OpDef Norm = {
    .inputs = {{"x", Role::Rows}, {"weight", Role::Weight}, {"bias", Role::Weight}},
    .floats = {"epsilon"},
    .integers = {"kind"},
    .operations = 6,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape& x = c.in[0];
      if (!is_f32(x) || x.rank < 2) return c.refuse("x must be f32 rows");
      if (c.params.i[0] < 0 || c.params.i[0] > int64_t(NormKind::None))
        return c.refuse("unknown kind of norm");
      for (size_t i = 1; i < c.in.size(); i++) {
        const Shape& v = c.in[i];
        if (!is_f32(v) || v.rank != 1 || v != c.in[1] ||
            (v.dim[0] != x.dim[0] && (x.rank < 3 || v.dim[0] != x.dim[0] * x.dim[1])))
          return c.refuse("weight and bias must have as many values as a row of x, or as all its heads");
      }
      return x;
    },
};

constinit const OpCheck NormCheck = {
    .reference = normalize,
    .tolerance = [](std::span<const Shape> in) { return (double(in[0].dim[0]) / 16 + 12) * kRounding; },
    .cases = norm_cases,
    .bench =
        [](DType, int rows, int) {
          OpParams p;
          p.f[0] = 1e-5f;
          Bench b = bench_of_rows(1, rows, p);
          for (int i = 0; i < 2; i++) b.inputs.push_back({Shape(DType::F32, {kBenchWidth}), {}});
          return b;
        },
};

}  // namespace gimbal::ops
