// Linear algebra of the tensor library, in a fixed order. Each value is reduced by its products in rising
// order of the row or column that they come from, one fused multiply-add each (f64: product and sum rounded
// apart). solve_triangular then divides by the diagonal. cholesky takes the root of each pivot, and gives NaN
// from the first one on that is not above 0. qr reflects column after column (Householder): the sum of
// squares below the diagonal in rising order, beta = -sign(alpha) * sqrt(alpha^2 + squares), v = x / (alpha -
// beta), factor = 2 / (1 + v^T v); a column that is 0 there stays as it is.
#include "ops/defs/tensor_parts.h"

namespace gimbal::ops {
namespace {

bool computes(const Shape& s) { return s.type == DType::F32 || s.type == DType::F64; }
bool same_outer(const Shape& a, const Shape& b) {
  return a.rank == b.rank && std::equal(a.dim + 2, a.dim + kMaxRank, b.dim + 2);
}

Result<Shape> shape_of_solve(const ShapeCall& c) {
  const Shape &a = c.in[0], &b = c.in[1];
  if (!computes(a) || a.type != b.type) return c.refuse("both must be f32, or both f64");
  if (a.rank < 2 || a.dim[0] != a.dim[1]) return c.refuse("a must be square");
  if (!same_outer(a, b) || b.dim[1] != a.dim[0]) return c.refuse("b must have as many rows as a");
  return b;
}
Result<Shape> shape_of_cholesky(const ShapeCall& c) {
  if (!computes(c.in[0])) return c.refuse("a must be f32 or f64");
  if (c.in[0].rank < 2 || c.in[0].dim[0] != c.in[0].dim[1]) return c.refuse("a must be square");
  return c.in[0];
}
Result<Shape> shape_of_qr(const ShapeCall& c) {
  if (!computes(c.in[0])) return c.refuse("a must be f32 or f64");
  if (c.in[0].rank < 2) return c.refuse("a must have rows and columns");
  Shape to = c.in[0];
  to.dim[0] = std::min(c.in[0].dim[0], c.in[0].dim[1]), to.dim[1] = c.in[0].dim[0] + c.in[0].dim[1];
  return to;
}

}  // namespace

constinit const OpDef SolveTriangular = {
    .inputs = {{"a", Role::Whole}, {"b", Role::Whole}},
    .integers = {"upper", "unit_diagonal"},
    .shape = shape_of_solve,
    .cost = [](Cost& c, std::span<const Shape> in, const Shape& out, int64_t) {
      c.operations = double(in[0].dim[0]) * double(out.count());
    }};
constinit const OpDef Cholesky = {.inputs = {{"a", Role::Whole}},
                                  .shape = shape_of_cholesky,
                                  .cost = [](Cost& c, std::span<const Shape> in, const Shape& out, int64_t) {
                                    c.operations = double(in[0].dim[0]) * double(out.count()) / 3;
                                  }};
constinit const OpDef Qr = {.inputs = {{"a", Role::Whole}},
                            .shape = shape_of_qr,
                            .cost = [](Cost& c, std::span<const Shape> in, const Shape& out, int64_t) {
                              c.operations = 4 * double(out.dim[0]) * double(in[0].count());
                            }};

constinit const OpCheck SolveTriangularCheck = kUnchecked, CholeskyCheck = kUnchecked, QrCheck = kUnchecked;

}  // namespace gimbal::ops
