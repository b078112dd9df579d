// Ops of the tensor library on formats in blocks. encode: tensor/quant_encode.h has its meaning.
// indexed_product: rising k, one fused multiply-add each, from +0; halves and blocks are converted to f32
// first.
#include <cmath>
#include <tuple>

#include "ops/defs/running_error.h"
#include "ops/defs/tensor_cases.h"
#include "tensor/quant_encode.h"

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

// The encoders are defined by tensor/quant_encode.h, the meaning of blocks by tensor/quant.h.
void encoded(const reference::Call& c) {
  const Shape& to = c.out.shape;
  const auto floats = [](const reference::Tensor& t) {
    return std::vector<float>(t.values.begin(), t.values.end());
  };
  const std::vector<float> x = floats(*c.in[0]),
                           importance = c.in.size() > 1 ? floats(*c.in[1]) : std::vector<float>();
  std::vector<std::byte> blocks(size_t(to.bytes()));
  for (int64_t row = 0; row < to.rows(); row++)
    encode(to.type, &x[size_t(row * to.dim[0])], to.dim[0],
           &blocks[size_t(row * row_bytes(to.type, to.dim[0]))],
           importance.empty() ? nullptr : importance.data());
  const reference::Tensor got = reference::decode(to, blocks.data());
  for (size_t i = 0; i < c.computed; i++) c.put_exact(i, got.values[i]);
}

void indexed_products(const reference::Call& c) {
  const Shape &w = c.in[0]->shape, &x = c.in[1]->shape, &ids = c.in[2]->shape;
  const auto depth = size_t(w.dim[0]), outputs = size_t(w.dim[1]), slots = size_t(ids.dim[0]);
  for (size_t i = 0; i < c.computed; i++) {
    const size_t output = i % outputs, place = i / outputs, row = place / slots, slot = place % slots;
    const double* matrix = &c.x(0)[(size_t(c.whole(2)[place]) * outputs + output) * depth];
    const double* vector = &c.x(1)[(x.dim[1] == 1 ? row : row * slots + slot) * depth];
    Rounded sum;
    for (size_t k = 0; k < depth; k++) sum = fused({vector[k]}, {matrix[k]}, sum, false);
    c.put(i, sum.v, sum.e);
  }
}

// Formats in blocks that encode makes, and indexed_product takes besides plain numbers.
bool in_blocks(DType t) { return info(t).block > 1 && is_weight(format_of(t)) && !format_of(t).tensor_scale; }

// Blocks of numbers about 1, of zeros, of subnormal and of very small numbers, and one that is far from 0.
std::vector<Case> encode_cases(DType to) {
  std::vector<Case> all;
  if (!in_blocks(to)) return all;
  Numbers n = numbers_for(OpKind::Encode, to);
  const int64_t block = info(to).block;
  for (bool weighted : {false, true}) {
    OpParams p;
    p.i[0] = int64_t(to);
    const Shape x(DType::F32, {2 * block, 3});
    std::vector<double> v(size_t(x.count()));
    for (size_t i = 0; i < v.size(); i++) {
      const double normal = n.normal();
      const size_t which = i / size_t(block);
      v[i] = which == 1   ? 0
             : which == 2 ? 1e-42 * normal
             : which == 3 ? 1e-38 * normal
             : which == 4 ? 100 + normal
                          : normal;
    }
    v[size_t(block) * 5] = 1e4;
    std::vector<CaseInput> in = {numbers_of(x, v)};
    if (weighted) {
      std::vector<double> weight(size_t(x.dim[0]));
      for (double& w : weight) w = n.below(9) ? std::fabs(n.normal()) : 0;
      in.push_back(numbers_of(Shape(DType::F32, {x.dim[0]}), weight));
    }
    all.push_back(
        tensor_case(OpKind::Encode, to, weighted ? "with an importance" : "alone", std::move(in), p));
  }
  return all;
}

// Named by x: so the kernels of all instruction sets share the cases of all formats of matrices.
std::vector<Case> indexed_cases(DType named) {
  std::vector<Case> all;
  if (named != DType::F32) return all;
  Numbers n = numbers_for(OpKind::IndexedProduct, named);
  constexpr DType kIds[] = {DType::I32, DType::U8, DType::I64, DType::U32, DType::I16};
  for (DType t : kAllDTypes) {
    const bool plain = has(kFloats, t) && t != DType::F64;
    if (!plain && !in_blocks(t)) continue;
    for (const auto& [blocks, outputs, slots, shared] :
         std::initializer_list<std::tuple<int, int, int, bool>>{{1, 17, 2, false},
                                                                {plain ? 301 : 2, 5, 3, true}}) {
      const size_t next = all.size();
      const Shape w(t, {blocks * int64_t(info(t).block), outputs, 4}),
          x(named, {w.dim[0], shared ? 1 : slots, 3});
      const Shape which(kIds[next % std::size(kIds)], {slots, 3});
      const Lies how = nth(kViews, next), of_ids = nth(kViews, next + 2);
      const CaseInput matrices = plain ? numbers(w, n, Fill::Normal) : weights(w, n);
      all.push_back(tensor_case(
          OpKind::IndexedProduct, t,
          format("{} {} by {} {}", to_string(w), name_of(how), info(which.type).name, name_of(of_ids)),
          {matrices, numbers(x, n, Fill::Normal, how), ids(which, n, 4, of_ids)}));
    }
  }
  return all;
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

constinit const OpCheck EncodeCheck = {
    .named_by = kNamedByOutput, .reference = encoded, .tolerance = roundings<0>, .cases = encode_cases};
constinit const OpCheck IndexedProductCheck = {
    .named_by = 1, .reference = indexed_products, .tolerance = one_rounding, .cases = indexed_cases};

}  // namespace gimbal::ops
