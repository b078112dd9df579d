// Custom ops of the tensor library. Their kernels come with the program (abi.h, add_kernel), which also
// defines their meaning. The parameters give format and dims of the result.
#include "ops/defs/tensor_parts.h"

namespace gimbal::ops {
namespace {

Result<Shape> shape_of_custom(const ShapeCall& c) {
  const int64_t type = c.params.i[1], rank = c.params.i[2];
  if (c.params.i[0] == 0) return c.refuse("it must name a kernel");
  if (type < 0 || type >= kDTypeNumbers || !has(kNumbers, DType(type)))
    return c.refuse("its result must be of plain numbers");
  if (rank < 1 || rank > kMaxRank) return c.refuse("its result must have 1 to 8 dimensions");
  Shape to;
  to.type = DType(type), to.rank = int(rank);
  for (int i = 0; i < to.rank; i++) {
    to.dim[i] = c.params.i[3 + i];
    if (to.dim[i] < 1) return c.refuse("its result must have elements");
  }
  return to;
}
Result<Shape> shape_of_custom_in_place(const ShapeCall& c) {
  if (c.params.i[0] == 0) return c.refuse("it must name a kernel");
  return c.in[0];
}

}  // namespace

constinit const OpDef Custom = {
    .inputs = {{"x1", Role::Whole},
               {"x2", Role::Whole},
               {"x3", Role::Whole},
               {"x4", Role::Whole},
               {"x5", Role::Whole},
               {"x6", Role::Whole},
               {"x7", Role::Whole}},
    .integers = {"kernel", "dtype", "rank", "dim0", "dim1", "dim2", "dim3", "dim4", "dim5", "dim6", "dim7"},
    .shape = shape_of_custom};
constinit const OpDef CustomInPlace = {.inputs = {{"to", Role::Written},
                                                  {"x2", Role::Whole},
                                                  {"x3", Role::Whole},
                                                  {"x4", Role::Whole},
                                                  {"x5", Role::Whole},
                                                  {"x6", Role::Whole},
                                                  {"x7", Role::Whole}},
                                       .integers = {"kernel"},
                                       .shape = shape_of_custom_in_place};

constinit const OpCheck CustomCheck = kUnchecked, CustomInPlaceCheck = kUnchecked;

}  // namespace gimbal::ops
