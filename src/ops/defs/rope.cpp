// rope(x[hd, heads, R], table f32[rot, R] of (cos, sin)) -> as x: rotates `rot` values of each head from
// `first` on, pair by pair: (a, b) -> (a cos - b sin, b cos + a sin). RopePairs defines the pairs.
#include "ops/defs/parts.h"

namespace gimbal::ops {
namespace {

void rotate(const reference::Call& c) {
  const auto hd = size_t(c.out.shape.dim[0]), row = hd * size_t(c.out.shape.dim[1]),
             rotated = size_t(c.in[1]->shape.dim[0]), half = rotated / 2;
  const bool adjacent = RopePairs(c.params.i[0]) == RopePairs::Adjacent;
  const auto first = size_t(c.params.i[1]);
  for (size_t i = 0; i < c.computed; i++) {
    const size_t d = i % hd - first;
    if (d >= rotated) {  // also before the first
      c.put(i, c.x()[i], 0);
      continue;
    }
    const bool second = adjacent ? d % 2 : d >= half;
    const size_t pair = adjacent ? d / 2 : d % half;
    const size_t other = adjacent ? i - d + (d ^ 1) : second ? i - half : i + half;
    const double* angle = &c.x(1)[i / row * rotated + 2 * pair];
    const double own = c.x()[i] * angle[0], others = c.x()[other] * (second ? angle[1] : -angle[1]);
    c.put(i, own + others, std::fabs(own) + std::fabs(others));
  }
}

std::vector<Case> rope_cases(DType x) {
  std::vector<Case> all;
  if (x != DType::F32) return all;
  for (RopePairs pairs : {RopePairs::Adjacent, RopePairs::Halves})
    for (bool whole : {true, false}) {
      auto some = row_cases(OpKind::Rope, x, [&](Case& c, int width, Numbers& n) {
        const int rotated = whole ? width : width / 4 * 2;
        if (width % 2 || width > 256 || !rotated) return false;
        c.name += (pairs == RopePairs::Adjacent ? " adjacent" : " halves") + format(" rotated={}", rotated);
        c.params.i[0] = int32_t(pairs), c.params.i[1] = (width - rotated) / 4;
        if (c.params.i[1]) c.name += format(" first={}", c.params.i[1]);
        c.inputs = {floats(Shape(x, {width, 3, c.capacity}), n), floats(Shape(x, {rotated, c.capacity}), n)};
        return true;
      });
      for (Case& c : some) all.push_back(std::move(c));
    }
  return all;
}

}  // namespace

constinit const OpDef Rope = {
    .inputs = {{"x", Role::Rows}, {"table", Role::Rows}},
    .integers = {"pairs", "first"},
    .operations = 3,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &x = c.in[0], &table = c.in[1];
      if (!is_f32(x) || x.rank != 3 || !is_f32_rows(table))
        return c.refuse("x must be f32[hd, heads, rows], the table f32[rot, rows]");
      if (table.dim[1] != x.dim[2]) return c.refuse("the table must have one row per row of x");
      if (c.params.i[1] < 0 || c.params.i[1] > x.dim[0] || table.dim[0] > x.dim[0] - c.params.i[1] ||
          table.dim[0] % 2)
        return c.refuse("an even number of values, at most a head's, can be rotated");
      return x;
    },
};

constinit const OpCheck RopeCheck = {
    .reference = rotate,
    .tolerance = roundings<3>,
    .cases = rope_cases,
    .bench =
        [](DType, int rows, int) {
          constexpr int kHeads = 32, kHeadDim = 128;
          OpParams p;
          p.i[0] = int32_t(RopePairs::Halves);
          return Bench{
              format("{} x {}", kHeads, kHeadDim),
              {{Shape(DType::F32, {kHeadDim, kHeads, rows}), {}}, {Shape(DType::F32, {kHeadDim, rows}), {}}},
              p};
        },
};

}  // namespace gimbal::ops
