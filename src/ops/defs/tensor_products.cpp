// Products of the tensor library. Each output is the sum of its products in rising order of k, from +0: one
// fused multiply-add for each (f64: product and sum rounded apart). Halves are converted exactly, the result
// is rounded once. In conv, k runs over (channel of the group, row, column) of the window; padding takes part
// as +0.
#include "ops/defs/tensor_parts.h"

namespace gimbal::ops {
namespace {

Result<Shape> shape_of_matrices(const ShapeCall& c) {
  const Shape &a = c.in[0], &b = c.in[1];
  if (a.type != b.type || !has(kFloats, a.type)) return c.refuse("both must be floats of one dtype");
  if (a.rank < 2 || a.rank != b.rank || a.dim[0] != b.dim[1])
    return c.refuse("the inner dimensions must be equal");
  Shape to = a;
  to.dim[0] = b.dim[0];
  for (int i = 2; i < a.rank; i++)
    if (a.dim[i] != b.dim[i]) return c.refuse("the outer dimensions must be equal");
  return to;
}

Result<Shape> shape_of_conv(const ShapeCall& c) {
  const Shape &x = c.in[0], &w = c.in[1];
  const auto param = [&](ConvParam p) { return c.params.i[int(p)]; };
  if (x.type != w.type || !has(kFloats, x.type)) return c.refuse("both must be floats of one dtype");
  if (x.rank != 4 || w.rank != 4) return c.refuse("both must have four dimensions");
  const int64_t groups = param(ConvParam::Groups);
  if (groups < 1 || x.dim[2] % groups || w.dim[3] % groups || w.dim[2] != x.dim[2] / groups)
    return c.refuse("the channels of x must be those of the kernel for each group");
  const int64_t width = param(ConvParam::OutX), height = param(ConvParam::OutY);
  if (width < 1 || height < 1) return c.refuse("the window does not fit");
  for (ConvParam p : {ConvParam::StrideX, ConvParam::StrideY, ConvParam::DilateX, ConvParam::DilateY,
                      ConvParam::UpX, ConvParam::UpY})
    if (param(p) < 1) return c.refuse("steps must be at least 1");
  Shape to(x.type, {width, height, w.dim[3], x.dim[3]});
  return to;
}

}  // namespace

constinit const OpDef Product = {.inputs = {{"a", Role::Whole}, {"b", Role::Whole}},
                                 .product = false,
                                 .shape = shape_of_matrices,
                                 .cost = [](Cost& c, std::span<const Shape> in, const Shape& out, int64_t) {
                                   c.operations = 2 * double(in[0].dim[0]) * double(out.count());
                                 }};
constinit const OpDef Conv = {.inputs = {{"x", Role::Whole}, {"kernel", Role::Whole}},
                              .integers = {"stride_x", "stride_y", "pad_x", "pad_y", "dilate_x", "dilate_y",
                                           "groups", "up_x", "up_y", "out_x", "out_y", "flip"},
                              .shape = shape_of_conv,
                              .cost = [](Cost& c, std::span<const Shape> in, const Shape& out, int64_t) {
                                c.operations = 2 * double(in[1].dim[0] * in[1].dim[1] * in[1].dim[2]) *
                                               double(out.count());
                              }};
constinit const OpDef Random = {.inputs = {{"state", Role::Whole}},
                                .integers = {"distribution", "dtype", "values"},
                                .operations = 20,
                                .shape = [](const ShapeCall& c) -> Result<Shape> {
                                  const auto type = DType(c.params.i[1]);
                                  if (c.in[0].type != DType::U32 || c.in[0].rank != 1 || c.in[0].dim[0] != 4)
                                    return c.refuse("the state must be u32[4]");
                                  if (!has(kFloats, type) || c.params.i[2] < 1)
                                    return c.refuse("random numbers are floats");
                                  return Shape(type, {c.params.i[2]});
                                }};

constinit const OpCheck ProductCheck = kUnchecked, ConvCheck = kUnchecked, RandomCheck = kUnchecked;

}  // namespace gimbal::ops
