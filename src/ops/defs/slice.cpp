// slice(x[d, ...]) -> [n, ...]: values `first` to first + n - 1 of each d.
// concat(a[m, heads, R], b[n, heads or 1, R]) -> [m + n, heads, R]: head by head, b after a; a single head of
// b is shared by all.
#include "ops/defs/parts.h"

namespace gimbal::ops {
namespace {

void cut(const reference::Call& c) {
  const auto d = size_t(c.in[0]->shape.dim[0]), n = size_t(c.out.shape.dim[0]);
  for (size_t i = 0; i < c.computed; i++) c.put(i, c.x()[i / n * d + size_t(c.params.i[0]) + i % n], 0);
}

void join(const reference::Call& c) {
  const auto m = size_t(c.in[0]->shape.dim[0]), n = size_t(c.in[1]->shape.dim[0]),
             heads = size_t(c.out.shape.dim[1]), others = size_t(c.in[1]->shape.dim[1]);
  for (size_t i = 0; i < c.computed; i++) {
    const size_t d = i % (m + n), head = i / (m + n) % heads, row = i / (m + n) / heads;
    c.put(i,
          d < m ? c.x(0)[(row * heads + head) * m + d] : c.x(1)[(row * others + head % others) * n + d - m],
          0);
  }
}

std::vector<Case> slice_cases(DType x) {
  return row_cases(OpKind::Slice, x, [x](Case& c, int width, Numbers& n) {
    if (x != DType::F32 || width > 1000) return false;
    const int first = width / 3, size = (width - first + 1) / 2;
    c.name += format(" first={} n={}", first, size);
    c.params.i[0] = first, c.params.i[1] = size;
    c.inputs = {floats(Shape(x, {width, 3, c.capacity}), n)};
    return true;
  });
}

std::vector<Case> concat_cases(DType x) {
  return row_cases(OpKind::Concat, x, [x](Case& c, int width, Numbers& n) {
    if (x != DType::F32 || width > 1000) return false;
    const int others = width % 2 ? 1 : 3, behind = 1 + width / 3;
    c.name += format(" n={} heads={}", behind, others);
    c.inputs = {floats(Shape(x, {width, 3, c.capacity}), n),
                floats(Shape(x, {behind, others, c.capacity}), n)};
    return true;
  });
}

}  // namespace

constinit const OpDef Slice = {
    .inputs = {{"x", Role::Rows}},
    .integers = {"first", "n"},
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      Shape y = c.in[0];
      const int64_t first = c.params.i[0], n = c.params.i[1];
      if (!is_f32(y) || y.rank < 2) return c.refuse("x must be f32 rows");
      if (first < 0 || n < 1 || first > y.dim[0] || n > y.dim[0] - first)
        return c.refuse("a part must have at least one value and lie inside x");
      y.dim[0] = n;
      return y;
    },
};
constinit const OpCheck SliceCheck = {
    .reference = cut,
    .tolerance = roundings<0>,
    .cases = slice_cases,
    .bench =
        [](DType, int rows, int) {
          OpParams p;
          p.i[1] = kBenchWidth / 2;
          return bench_of_rows(1, rows, p);
        },
};

constinit const OpDef Concat = {
    .inputs = {{"a", Role::Rows}, {"b", Role::Rows}},
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &a = c.in[0], &b = c.in[1];
      if (!is_f32(a) || !is_f32(b) || a.rank != 3 || b.rank != 3 || a.dim[2] != b.dim[2] ||
          (b.dim[1] != a.dim[1] && b.dim[1] != 1))
        return c.refuse("both must be f32[hd, heads, rows] with the same heads, or b with one");
      return Shape(DType::F32, {a.dim[0] + b.dim[0], a.dim[1], a.dim[2]});
    },
};
constinit const OpCheck ConcatCheck = {
    .reference = join,
    .tolerance = roundings<0>,
    .cases = concat_cases,
    .bench =
        [](DType, int rows, int) {
          const BenchInput part{Shape(DType::F32, {kBenchWidth / 64, 32, rows}), {}};
          return Bench{format("32 x {}", kBenchWidth / 32), {part, part}, {}};
        },
};

}  // namespace gimbal::ops
