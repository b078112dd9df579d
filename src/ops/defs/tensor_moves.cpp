// Ops of the tensor library that move numbers and compute none: cast (each value rounded once, from the exact
// one; to integers truncated within their range, NaN gives 0; to smaller integers wrapped; to bool: not 0),
// assign, select, gather, scatter (in rising order of the places: the last one wins, or each is added),
// check_ids.
#include "ops/defs/tensor_parts.h"

namespace gimbal::ops {
namespace {

Result<Shape> shape_of_cast(const ShapeCall& c) {
  Shape to = c.in[0];
  to.type = DType(c.params.i[0]);
  if (!has(kNumbers, to.type)) return c.refuse("the dtype must be one of plain numbers");
  return to;
}
Result<Shape> shape_of_assign(const ShapeCall& c) {
  if (c.in[0] != c.in[1]) return c.refuse("both must have one dtype and the same dimensions");
  return c.in[0];
}
Result<Shape> shape_of_select(const ShapeCall& c) {
  if (c.in[0].type != DType::Bool) return c.refuse("the condition must be bool");
  if (c.in[1] != c.in[2] || !same_dims(c.in[0], c.in[1]))
    return c.refuse("both choices must have one dtype, and all the same dimensions");
  return c.in[1];
}
bool is_dim(const Shape& s, int64_t dim) { return dim >= 0 && dim < s.rank; }

Result<Shape> shape_of_gather(const ShapeCall& c) {
  const int64_t dim = c.params.i[0];
  if (!is_ids(c.in[1])) return c.refuse("the ids must be integers");
  if (!is_dim(c.in[0], dim) || !same_but(c.in[0], c.in[1], dim))
    return c.refuse("the ids must have the dimensions of x, but for the one along which they choose");
  Shape to = c.in[1];
  to.type = c.in[0].type;
  return to;
}
Result<Shape> shape_of_scatter(const ShapeCall& c) {
  const int64_t dim = c.params.i[0];
  if (!is_ids(c.in[1])) return c.refuse("the ids must be integers");
  if (c.in[0].type != c.in[2].type) return c.refuse("both must have one dtype");
  if (!is_dim(c.in[0], dim) || !same_but(c.in[0], c.in[1], dim) || !same_dims(c.in[1], c.in[2]))
    return c.refuse(
        "ids and x must have the same dimensions, those of the target but for the one along which they "
        "choose");
  return c.in[0];
}

}  // namespace

constinit const OpDef Cast = {
    .inputs = {{"x", Role::Whole}}, .integers = {"dtype"}, .operations = 1, .shape = shape_of_cast};
constinit const OpDef Assign = {
    .inputs = {{"to", Role::Written}, {"x", Role::Whole}}, .operations = 1, .shape = shape_of_assign};
constinit const OpDef Select = {
    .inputs = {{"condition", Role::Whole}, {"a", Role::Whole}, {"b", Role::Whole}},
    .operations = 1,
    .shape = shape_of_select};
constinit const OpDef Gather = {.inputs = {{"x", Role::Whole}, {"ids", Role::Whole}},
                                .integers = {"dim"},
                                .operations = 1,
                                .shape = shape_of_gather};
constinit const OpDef Scatter = {.inputs = {{"to", Role::Written}, {"ids", Role::Whole}, {"x", Role::Whole}},
                                 .integers = {"dim", "added"},
                                 .operations = 1,
                                 .shape = shape_of_scatter};
constinit const OpDef CheckIds = {
    .inputs = {{"ids", Role::Whole}},
    .integers = {"below"},
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      if (!is_ids(c.in[0])) return c.refuse("the ids must be integers");
      return Shape(DType::I64, {3});
    },
    .cost = [](Cost& c, std::span<const Shape> in, const Shape&,
               int64_t) { c.operations = double(in[0].count()); },
};

constinit const OpCheck CastCheck = kUnchecked, AssignCheck = kUnchecked, SelectCheck = kUnchecked,
                        GatherCheck = kUnchecked, ScatterCheck = kUnchecked, CheckIdsCheck = kUnchecked;

}  // namespace gimbal::ops
