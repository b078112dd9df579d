// What kernels of the tensor library claim: inputs of any strides, and the formats that belong to an op. As
// claims.h, evaluated at compile time.
#pragma once
#include "device/abi.h"
#include "ops/op.h"
#include "ops/reductions.h"
#include "tensor/format.h"

namespace gimbal {
namespace {

constexpr bool is_tensor_op(OpKind op) { return op >= OpKind::Map && op <= OpKind::Qr; }

constexpr gimbal_operand strided_claim(DTypeSet dtypes) { return {dtypes, GIMBAL_DENSE, 1}; }

// Formats in blocks that cast decodes and encode makes: those whose numbers need nothing that follows the
// tensor.
constexpr DTypeSet decodable_blocks() {
  DTypeSet all = 0;
  for (DType t : kAllDTypes)
    if (is_weight(format_of(t)) && format_of(t).number == Number::Codes && !format_of(t).tensor_scale)
      all |= set_of(t);
  return all;
}

// What Reduce gives for these.
constexpr DTypeSet reduced_types(DTypeSet of) {
  DTypeSet all = 0;
  for (DType t : kAllDTypes)
    for (int r = 0; has(of, t) && r < int(Reduction::Count); r++)
      if (const auto type = reduced_type(Reduction(r), t)) all |= set_of(*type);
  return all;
}

// `as`: the format of the arithmetic (tensor/dtype.h); ops that move numbers take all.
constexpr gimbal_kernel_info tensor_claims(const char* name, OpKind op, DType as) {
  const DTypeSet own = computed_as(as), bool_only = set_of(DType::Bool);
  gimbal_kernel_info k{};
  k.struct_size = sizeof k;
  k.name = name;
  k.op = uint16_t(op);
  k.numerics = GIMBAL_EXACT;
  auto in = [&](auto... sets) {
    int i = 0;
    ((k.in[i++] = strided_claim(sets)), ...);
  };
  auto integers = [&](int n) {
    for (int i = 0; i < n; i++) k.params |= 1u << i;
  };
  k.out[0] = {own, GIMBAL_DENSE, 0};
  switch (op) {
    case OpKind::Map:
      in(own, own), k.out[0].dtypes |= bool_only, integers(3);
      k.params |= 1u << 16 | 1u << 17;  // f[0], f[1]
      break;
    case OpKind::Cast: in(kNumbers | decodable_blocks()), k.out[0].dtypes = kNumbers, integers(1); break;
    case OpKind::Assign: in(kNumbers, kNumbers), k.out[0] = k.in[0]; break;
    case OpKind::Select: in(bool_only, kNumbers, kNumbers), k.out[0].dtypes = kNumbers; break;
    case OpKind::Gather: in(kNumbers, kIntegers), k.out[0].dtypes = kNumbers, integers(1); break;
    case OpKind::Scatter: in(kNumbers, kIntegers, kNumbers), k.out[0] = k.in[0], integers(2); break;
    case OpKind::CheckIds: in(kIntegers), k.out[0].dtypes = set_of(DType::I64), integers(1); break;
    case OpKind::Reduce: in(own), k.out[0].dtypes = reduced_types(own), integers(2); break;
    case OpKind::Softmax: in(own), integers(1); break;
    case OpKind::Normalize: in(own, own, own), integers(1), k.params |= 1u << 16; break;
    case OpKind::CumSum:
      in(own & (kFloats | set_of(DType::I64))), k.out[0] = {k.in[0].dtypes, GIMBAL_DENSE, 0};
      break;
    case OpKind::Product: in(own, own); break;
    case OpKind::Conv: in(own, own), integers(int(ConvParam::Count)); break;
    case OpKind::Resample:
      in(own, set_of(DType::I32), set_of(as));
      k.in[1].strided = k.in[2].strided = 0;
      break;
    case OpKind::Random:
      in(set_of(DType::U32)), k.in[0].strided = 0, k.out[0].dtypes = kFloats, integers(3);
      break;
    case OpKind::Order:
      in(kNumbers & ~kStored), k.out[0].dtypes = set_of(DType::I32) | k.in[0].dtypes, integers(2);
      break;
    case OpKind::Encode:
      in(set_of(DType::F32), set_of(DType::F32)), k.out[0].dtypes = decodable_blocks(), integers(1);
      k.in[0].strided = k.in[1].strided = 0;
      break;
    case OpKind::IndexedProduct:
      in(computed_as(DType::F32) | decodable_blocks(), set_of(DType::F32), kIntegers);
      k.in[0].strided = k.in[1].strided = 0, k.out[0].dtypes = set_of(DType::F32);
      break;
    case OpKind::SolveTriangular:
      in(set_of(as), set_of(as)), k.out[0].dtypes = set_of(as), integers(2);
      break;
    case OpKind::Cholesky:
    case OpKind::Qr: in(set_of(as)), k.out[0].dtypes = set_of(as); break;
    default: break;  // custom ones state their claims with add_kernel
  }
  return k;
}

}  // namespace
}  // namespace gimbal
