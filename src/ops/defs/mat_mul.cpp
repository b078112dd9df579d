// mat_mul(w[k, n], x[k, R], bias f32[n]) -> f32[n, R]: x times the rows of w, plus an optional bias. x is f32
// for float weights, else quantized as activation_type() states.
#include <algorithm>
#include <iterator>

#include "ops/defs/parts.h"
#include "tensor/activations.h"

namespace gimbal::ops {
namespace {

struct ProductSize {
  int blocks, tail, n, rows, bias;  // k = blocks * block + tail
  int spare = 2;                    // unused rows in the output's capacity
};
// One block and many; a chunk of 256, one more, one less; a tile of 16
// outputs, one more, one less; numbers of rows around those that kernels
// process at once; few rows in a large capacity; and a capacity of one row.
constexpr ProductSize kProducts[] = {{1, 0, 1, 1, 0},      {2, 0, 16, 1, 1},      {3, 5, 17, 2, 0},
                                     {8, 0, 15, 3, 0},     {9, 1, 33, 4, 1},      {16, 0, 48, 5, 0},
                                     {17, 3, 7, 8, 0},     {43, 31, 64, 9, 1},    {64, 0, 256, 1, 0},
                                     {5, 0, 130, 31, 0},   {9, 0, 33, 16, 1},     {3, 0, 17, 33, 0},
                                     {8, 0, 20, 3, 1, 30}, {1, 0, 5, 260, 0},     {3, 5, 17, 1, 0, 0},
                                     {9, 1, 33, 1, 1, 0},  {43, 31, 64, 1, 0, 0}, {9, 0, 33, 7, 1, 0},
                                     {3, 5, 17, 14, 0, 0}, {17, 1, 50, 21, 1, 0}, {8, 0, 34, 32, 0, 0}};

// A realistic prompt: more rows, columns and outputs than kernels stage at once. One weight format stands for
// all with the same activation format.
ProductSize prompt(int block) { return {kChunk / std::max(block, 32) + 1, 3, 130, 200, 0}; }
// For a8_row, which sums over the whole row: rows of published models that end in half a chunk.
constexpr ProductSize kHalfChunk = {25, 0, 33, 40, 1};  // 3200 columns
bool stands_for_others(DType w) {
  for (DType t : kAllDTypes)
    if (can_decode(t) && activation_type(t) == activation_type(w)) return t == w;
  return false;
}

std::vector<Case> mat_mul_cases(DType w) {
  std::vector<Case> all;
  if (!can_decode(w)) return all;
  const DType x = activation_type(w);
  const int block = std::max(info(w).block, info(x).block);
  Numbers n(uint64_t(w) + 11);
  std::vector<ProductSize> sizes(std::begin(kProducts), std::end(kProducts));
  if (stands_for_others(w)) sizes.push_back(prompt(block));
  if (activations_of(x).scale_of_row) sizes.push_back(kHalfChunk);
  for (const ProductSize& s : sizes) {
    const int columns = block > 1 ? block * s.blocks : 32 * s.blocks + s.tail;
    if (int64_t(columns) * s.n > 1 << 19) continue;  // slow where decoding a weight is slow
    Case c{case_name(OpKind::MatMul, w,
                     format("k={} n={} rows={}{}", columns, s.n, s.rows, s.bias ? " bias" : "")),
           OpKind::MatMul,
           {},
           {},
           s.rows,
           s.rows + s.spare};
    const Shape rows(x, {columns, c.capacity});
    c.inputs.push_back(weights(Shape(w, {columns, s.n}), n));
    c.inputs.push_back(x == DType::F32 ? floats(rows, n) : activations(rows, n));
    if (s.bias) c.inputs.push_back(floats(Shape(DType::F32, {s.n}), n));
    all.push_back(std::move(c));
  }
  return all;
}

}  // namespace

constinit const OpDef MatMul = {
    .inputs = {{"weight", Role::Weight}, {"x", Role::Rows}, {"bias", Role::Weight}},
    .product = true,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &w = c.in[0], &x = c.in[1];
      if (w.rank != 2 || x.rank != 2) return c.refuse("the weight and x must be matrices");
      if (w.dim[0] != x.dim[0]) return c.refuse("the rows of the weight and of x must be equally long");
      if (x.type != activation_type(w.type))
        return c.refuse("x is not in the format that matches the weight's");
      if (c.in.size() == 3 && (!is_f32(c.in[2]) || c.in[2].rank != 1 || c.in[2].dim[0] != w.dim[1]))
        return c.refuse("the bias must be f32 with one value per row of the weight");
      return Shape(DType::F32, {w.dim[1], x.dim[1]});
    },
    .cost = [](Cost& c, std::span<const Shape> in, const Shape&,
               int64_t) { c.operations = 2.0 * double(in[0].count()) * double(in[1].dim[1]); },
};

constinit const OpCheck MatMulCheck = {
    .reference =
        [](const reference::Call& c) {
          const auto k = size_t(c.in[0]->shape.dim[0]), n = size_t(c.in[0]->shape.dim[1]);
          for (size_t i = 0; i < c.computed; i++) {
            const double *w = &c.x(0)[i % n * k], *x = &c.x(1)[i / n * k];
            auto [s, terms] = dot(w, x, k);
            if (c.in.size() == 3) s += c.x(2)[i % n], terms += std::fabs(c.x(2)[i % n]);
            c.put(i, s, terms);
          }
        },
    // With one scale per row the integer sum is exact; roundings: the product of the scales, its product with
    // the integer, the bias. Else one rounding per FMA inside a chunk (a block, or a column of float
    // weights), two more per block for its scale, one per chunk.
    .tolerance =
        [](std::span<const Shape> in) {
          if (activations_of(in[1].type).scale_of_row) return 4 * kRounding;
          const auto k = double(in[0].dim[0]);
          const double per_chunk =
              std::min<double>(k, kChunk) / (info(in[0].type).block > 1 ? info(in[1].type).block : 1);
          return (per_chunk + 3 + k / kChunk + 2) * kRounding;
        },
    .cases = mat_mul_cases,
    .bench =
        [](DType w, int rows, int) {
          return Bench{format("{} x {}", kBenchColumns, kBenchOutputs),
                       {{Shape(w, {kBenchColumns, kBenchOutputs}), {}},
                        {Shape(activation_type(w), {kBenchColumns, rows}), {}}},
                       {},
                       true};
        },
};

}  // namespace gimbal::ops
