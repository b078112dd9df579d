// A small vocabulary for the kernel tables of backends: the inputs, formats and sizes that kernels support.
// Evaluated at compile time: kernel objects contain no code of it.
#pragma once
#include "device/abi.h"
#include "ops/op.h"
#include "tensor/dtype.h"

namespace gimbal {
namespace {  // so that no two files share its symbols

constexpr gimbal_operand claim_of(DTypeSet dtypes, gimbal_layout layout = GIMBAL_DENSE) {
  return {dtypes, uint8_t(layout), 0};
}

// Sizes that every kernel in this tree may assume: dimensions fit 32 bits, and rows have at most three
// further dimensions.
constexpr gimbal_limit kSizes[] = {
    {"dimension", GIMBAL_LARGEST_DIM, GIMBAL_EVERY_VALUE, 0, 0, 0, INT32_MAX},
    {"rank", GIMBAL_RANK, GIMBAL_EVERY_VALUE, 0, 0, 1, 4},
};
// The same, and heads of keys and values within the fixed buffer for one.
constexpr gimbal_limit kHeadSizes[] = {
    kSizes[0],
    kSizes[1],
    {"head_dim", GIMBAL_DIM, 0, 0, 0, 1, kMaxHeadDim},
    {"value_dim", GIMBAL_DIM, GIMBAL_OUTPUT, 0, 0, 1, kMaxHeadDim},
};
// The same as kSizes, and numbers of experts within the fixed buffers.
constexpr gimbal_limit kRouteSizes[] = {
    kSizes[0],
    kSizes[1],
    {"experts", GIMBAL_DIM, 0, 0, 0, 1, kMaxExperts},
    {"chosen experts", GIMBAL_PARAM, 0, 0, 0, 0, kMaxChosen},
    {"groups", GIMBAL_PARAM, 0, 3, 0, 0, kMaxExpertGroups},
};
// The same as kSizes, and a parameter with two values.
constexpr gimbal_limit kTwoWays[] = {
    kSizes[0],
    kSizes[1],
    {"variant", GIMBAL_PARAM, 0, 0, 0, 0, 1},
};

template <size_t n>
constexpr void limit(gimbal_kernel_info& k, const gimbal_limit (&limits)[n]) {
  k.limits = limits, k.n_limits = uint32_t(n);
}

// A row that claims the op as ops.def defines it today, for weights or a cache of `formats`, if it has any;
// the caller adds in[1] of a product, the activations. Optional inputs or parameters added to an op later
// must not be added here before all kernels that use this handle them.
constexpr gimbal_kernel_info claims(const char* name, OpKind op, DTypeSet formats = set_of(DType::F32),
                                    gimbal_layout weights = GIMBAL_PACKED) {
  const gimbal_operand f32 = claim_of(set_of(DType::F32)), i32 = claim_of(set_of(DType::I32)),
                       cache = claim_of(formats, GIMBAL_CACHE);
  gimbal_kernel_info k{};
  k.struct_size = sizeof k;
  k.name = name;
  k.op = uint16_t(op);
  k.numerics = GIMBAL_EXACT;
  limit(k, kSizes);
  for (int i = 0; i < info(op).min_inputs; i++) k.in[i] = f32;
  k.out[0] = f32;
  switch (op) {
    case OpKind::Embed: k.in[0] = claim_of(formats, weights), k.in[1] = i32; break;
    case OpKind::RmsNorm: k.params = GIMBAL_PARAM_F(0); break;                                 // epsilon
    case OpKind::Quantize: k.out[0] = claim_of(formats), k.params = GIMBAL_PARAM_I(0); break;  // the format
    case OpKind::MatMul: k.in[0] = claim_of(formats, weights), k.in[2] = f32; break;           // the bias
    case OpKind::Norm: k.in[1] = k.in[2] = f32, k.params = GIMBAL_PARAM_F(0) | GIMBAL_PARAM_I(0); break;
    case OpKind::Rope: k.params = GIMBAL_PARAM_I(0) | GIMBAL_PARAM_I(1), limit(k, kTwoWays); break;
    case OpKind::Hadamard: k.params = GIMBAL_PARAM_I(0); break;                   // the run
    case OpKind::Slice: k.params = GIMBAL_PARAM_I(0) | GIMBAL_PARAM_I(1); break;  // first, how many
    case OpKind::Sort: k.params = GIMBAL_PARAM_I(0), limit(k, kTwoWays); break;
    case OpKind::ArgSort: k.out[0] = i32, k.params = GIMBAL_PARAM_I(0), limit(k, kTwoWays); break;
    case OpKind::CacheWrite:
      k.in[0] = k.out[0] = cache, k.in[2] = k.in[3] = k.in[4] = i32;
      k.params = GIMBAL_PARAM_I(0), limit(k, kTwoWays);  // keys or values
      break;
    case OpKind::Attention:
      k.in[1] = k.in[2] = cache, k.in[3] = k.in[4] = k.in[5] = i32, k.in[7] = f32;
      k.in[6] = claim_of(set_of(DType::I32, DType::F32));                     // as the last parameter says
      k.params = GIMBAL_PARAM_F(0) | GIMBAL_PARAM_F(1) | GIMBAL_PARAM_F(2) |  // scale, cap, alibi
                 GIMBAL_PARAM_I(1) | GIMBAL_PARAM_I(2) | GIMBAL_PARAM_I(3) |
                 GIMBAL_PARAM_I(4);  // window, width of the values, distances, added
      limit(k, kHeadSizes);
      break;
    case OpKind::IndexScores:
      k.in[1] = cache, k.in[3] = k.in[4] = k.in[5] = i32, k.params = GIMBAL_PARAM_I(0);  // positions
      break;
    case OpKind::Route:
      k.in[1] = f32, limit(k, kRouteSizes);  // the bias
      k.params = GIMBAL_PARAM_F(0) | GIMBAL_PARAM_I(0) | GIMBAL_PARAM_I(1) | GIMBAL_PARAM_I(2) |
                 GIMBAL_PARAM_I(3) | GIMBAL_PARAM_I(4);
      break;
    case OpKind::ExpertMatMul:
      k.in[0] = claim_of(formats, weights), k.in[2] = k.in[3] = f32, k.params = GIMBAL_PARAM_I(0);
      break;
    case OpKind::Combine: k.in[2] = f32; break;  // the scales
    case OpKind::ShortConv: k.in[3] = k.in[4] = i32, k.in[5] = k.out[1] = f32; break;
    case OpKind::GatedRule:
      k.in[5] = k.in[6] = i32, k.in[7] = k.out[1] = f32;
      k.params = GIMBAL_PARAM_I(0) | GIMBAL_PARAM_I(1), limit(k, kTwoWays);
      break;
    case OpKind::DeltaRule: k.params = GIMBAL_PARAM_I(0), limit(k, kTwoWays); [[fallthrough]];
    case OpKind::SelectiveScan: k.in[6] = k.in[7] = i32, k.out[1] = f32; break;
    case OpKind::SelectRows: k.in[1] = i32; break;
    case OpKind::SoftCap:
    case OpKind::Clamp:
    case OpKind::ClampedSwiGlu:
    case OpKind::Scale: k.params = GIMBAL_PARAM_F(0); break;  // the factor
    case OpKind::TopK: k.params = GIMBAL_PARAM_I(0); break;   // k
    default: break;                                           // f32 in, f32 out, no parameters
  }
  return k;
}

}  // namespace
}  // namespace gimbal
