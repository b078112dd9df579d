// Ops of the tensor library that work along dims. The order of additions: docs/internals/numerics.md. A NaN
// is the result of min, max, argmin and argmax if there is one, the first one's place; -0 is below +0 there.
// Softmax of a row of -infinity alone gives zeros. Ids of order are stable; -0 equals +0 there, and NaNs are
// equal and above +infinity.
#include "ops/defs/tensor_parts.h"
#include "ops/reductions.h"

namespace gimbal::ops {
namespace {

Result<Shape> shape_of_reduce(const ShapeCall& c) {
  const int64_t which = c.params.i[0], reduced = c.params.i[1];
  if (which < 0 || which >= int64_t(Reduction::Count)) return c.refuse("there is no such reduction");
  if (reduced < 0 || reduced > c.in[0].rank) return c.refuse("x does not have as many dimensions");
  Shape to = without_first(c.in[0], int(reduced));
  const auto type = reduced_type(Reduction(which), c.in[0].type);
  if (!type) return c.refuse("not of this dtype");
  to.type = *type;
  return to;
}
Result<Shape> shape_of_floats(const ShapeCall& c) {
  if (!has(kFloats, c.in[0].type)) return c.refuse("x must be of floats");
  if (c.in[0].rank < 1) return c.refuse("x must have a dimension");
  return c.in[0];
}
Result<Shape> shape_of_normalize(const ShapeCall& c) {
  auto to = shape_of_floats(c);
  for (size_t i = 1; to && i < c.in.size(); i++)
    if (c.in[i].type != to->type || c.in[i].rank != 1 || c.in[i].dim[0] != to->dim[0])
      return c.refuse("weight and bias must be of x's dtype, one value for each of a row");
  return to;
}
Result<Shape> shape_of_cumsum(const ShapeCall& c) {
  if (!has(kFloats, c.in[0].type) && c.in[0].type != DType::I64)
    return c.refuse("x must be of floats or i64");
  return c.in[0];
}
Result<Shape> shape_of_order(const ShapeCall& c) {
  if (!has(kNumbers & ~kStored, c.in[0].type)) return c.refuse("x must be of numbers that have an order");
  if (c.in[0].dim[0] > INT32_MAX) return c.refuse("a row has at most 2^31 - 1 values");
  Shape to = c.in[0];
  if (c.params.i[1] == 0) to.type = DType::I32;
  return to;
}
Result<Shape> shape_of_resample(const ShapeCall& c) {
  const Shape &x = c.in[0], &ids = c.in[1], &weights = c.in[2];
  if (x.rank < 1 || ids.type != DType::I32 || weights.type != computed_in(x.type) || ids.rank != 2 ||
      !same_dims(ids, weights))
    return c.refuse("ids must be i32, weights in the format of the arithmetic, both [taps, m]");
  Shape to = x;
  to.dim[0] = ids.dim[1];
  return to;
}

}  // namespace

constinit const OpDef Reduce = {.inputs = {{"x", Role::Whole}},
                                .integers = {"reduction", "dims"},
                                .shape = shape_of_reduce,
                                .cost = [](Cost& c, std::span<const Shape> in, const Shape&, int64_t) {
                                  c.operations = double(in[0].count());
                                }};
constinit const OpDef Softmax = {
    .inputs = {{"x", Role::Whole}}, .integers = {"logarithm"}, .operations = 20, .shape = shape_of_floats};
constinit const OpDef Normalize = {
    .inputs = {{"x", Role::Whole}, {"weight", Role::Whole}, {"bias", Role::Whole}},
    .floats = {"epsilon"},
    .integers = {"less_mean"},
    .operations = 8,
    .shape = shape_of_normalize};
constinit const OpDef CumSum = {.inputs = {{"x", Role::Whole}}, .operations = 2, .shape = shape_of_cumsum};
constinit const OpDef Order = {.inputs = {{"x", Role::Whole}},
                               .integers = {"order", "values"},
                               .shape = shape_of_order,
                               .cost = [](Cost& c, std::span<const Shape> in, const Shape&, int64_t) {
                                 c.operations = 20 * double(in[0].count());
                               }};
constinit const OpDef Resample = {
    .inputs = {{"x", Role::Whole}, {"ids", Role::Whole}, {"weights", Role::Whole}},
    .operations = 4,
    .shape = shape_of_resample};

constinit const OpCheck ReduceCheck = kUnchecked, SoftmaxCheck = kUnchecked, NormalizeCheck = kUnchecked,
                        CumSumCheck = kUnchecked, OrderCheck = kUnchecked, ResampleCheck = kUnchecked;

}  // namespace gimbal::ops
