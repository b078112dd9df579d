// Ops of the tensor library on formats in blocks. encode: tensor/quant_encode.h has its meaning.
// indexed_product: rising k, one fused multiply-add each, from +0; halves and blocks are converted to f32
// first.
#include "ops/defs/tensor_parts.h"

namespace gimbal::ops {
namespace {

Result<Shape> shape_of_encode(const ShapeCall& c) {
  const int64_t type = c.params.i[0];
  const Shape& x = c.in[0];
  if (x.type != DType::F32 || x.rank < 1) return c.refuse("x must be rows of f32");
  if (type < 0 || type >= kDTypeNumbers || info(DType(type)).block < 2 || !is_weight(format_of(DType(type))))
    return c.refuse("the dtype must be a format of weights in blocks");
  if (x.dim[0] % info(DType(type)).block) return c.refuse("a row must be whole blocks");
  if (c.in.size() > 1 && (c.in[1].type != DType::F32 || c.in[1].rank != 1 || c.in[1].dim[0] != x.dim[0]))
    return c.refuse("the importance must be f32, one value for each of a row");
  Shape to = x;
  to.type = DType(type);
  return to;
}
Result<Shape> shape_of_indexed(const ShapeCall& c) {
  const Shape &w = c.in[0], &x = c.in[1], &ids = c.in[2];
  if (x.type != DType::F32) return c.refuse("x must be f32");
  if (!is_ids(ids)) return c.refuse("the ids must be integers");
  if (w.rank != 3 || x.rank != 3 || ids.rank != 2 || w.dim[0] != x.dim[0] || x.dim[2] != ids.dim[1] ||
      (x.dim[1] != 1 && x.dim[1] != ids.dim[0]))
    return c.refuse("expected w[k, n, E], x[k, slots or 1, R] and ids[slots, R]");
  return Shape(DType::F32, {w.dim[1], ids.dim[0], ids.dim[1]});
}

}  // namespace

constinit const OpDef Encode = {.inputs = {{"x", Role::Whole}, {"importance", Role::Whole}},
                                .integers = {"dtype"},
                                .operations = 200,
                                .shape = shape_of_encode};
constinit const OpDef IndexedProduct = {
    .inputs = {{"w", Role::Whole}, {"x", Role::Whole}, {"ids", Role::Whole}},
    .shape = shape_of_indexed,
    .cost = [](Cost& c, std::span<const Shape> in, const Shape& out, int64_t) {
      c.operations = 2 * double(in[0].dim[0]) * double(out.count());
    }};

constinit const OpCheck EncodeCheck = kUnchecked, IndexedProductCheck = kUnchecked;

}  // namespace gimbal::ops
