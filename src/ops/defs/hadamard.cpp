// hadamard(x[hd, heads, R]) -> as x: each run of n values of a head times the Walsh-Hadamard matrix of n rows
// (entry (i, j): 1 or -1, as the bits that i and j share are even or odd in number), divided by the root of
// n. The matrix is symmetric and orthogonal: done twice, the values are back, but for rounding. Products of
// queries and keys do not change, and a value far above the others is spread over its run: less is lost
// when keys are quantized (Ashkboos et al., "QuaRot", 2024).
#include <bit>

#include "ops/defs/parts.h"

namespace gimbal::ops {
namespace {

void add_and_subtract(const reference::Call& c) {
  const auto n = size_t(c.params.i[0]);
  const double scale = 1 / std::sqrt(double(n));
  // Roundings: one of each stage's sum, of the factor, of the product with it.
  const double rounded = std::log2(double(n)) + 2;
  for (size_t i = 0; i < c.computed; i++) {
    const double* run = &c.x()[i / n * n];
    double sum = 0, size = 0;
    for (size_t j = 0; j < n; j++) {
      const bool odd = std::popcount(i % n & j) % 2;
      sum += odd ? -run[j] : run[j], size += std::fabs(run[j]);
    }
    c.put(i, sum * scale, size * scale * rounded);
  }
}

constexpr struct {
  int hd, heads, n;
} kHeadRuns[] = {{2, 3, 2},    {8, 1, 4},     {32, 4, 32},    {64, 3, 64},   {80, 2, 16},
                 {96, 5, 32},  {128, 2, 128}, {192, 1, 64},   {256, 3, 256}, {512, 1, 512},
                 {576, 2, 64}, {1024, 2, 32}, {1024, 1, 1024}};

std::vector<Case> hadamard_cases(DType x) {
  std::vector<Case> all;
  if (x != DType::F32) return all;
  Numbers numbers(67);
  for (const auto& run : kHeadRuns)
    for (const int rows : {1, 3, 18}) {
      Case c{case_name(OpKind::Hadamard, x,
                       format("hd={} heads={} n={} rows={}", run.hd, run.heads, run.n, rows)),
             OpKind::Hadamard,
             {},
             {},
             rows,
             rows};
      c.params.i[0] = run.n;
      c.inputs = {floats(Shape(x, {run.hd, run.heads, rows}), numbers)};
      all.push_back(std::move(c));
    }
  return all;
}

}  // namespace

constinit const OpDef Hadamard = {
    .inputs = {{"x", Role::Rows}},
    .integers = {"run"},
    .operations = 7,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape& x = c.in[0];
      const int64_t n = c.params.i[0];
      if (!is_f32(x) || x.rank != 3 || x.dim[0] > kMaxHeadDim)
        return c.refuse("x must be f32[hd, heads, rows] with heads of at most 1024 values");
      if (n < 2 || (n & (n - 1)) || x.dim[0] % n)
        return c.refuse("a run must be a power of two from 2 on, and heads whole runs");
      return x;
    },
};

constinit const OpCheck HadamardCheck = {
    .reference = add_and_subtract,
    .tolerance = roundings<1>,  // the reference's magnitude counts them
    .cases = hadamard_cases,
    .bench =
        [](DType, int rows, int) {
          constexpr int kHeads = 32, kHeadDim = 128;
          OpParams p;
          p.i[0] = kHeadDim;
          return Bench{
              format("{} x {}", kHeads, kHeadDim), {{Shape(DType::F32, {kHeadDim, kHeads, rows}), {}}}, p};
        },
};

}  // namespace gimbal::ops
