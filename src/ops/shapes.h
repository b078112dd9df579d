// Which shapes an op takes and which it gives: checked while a program is recorded, op by op.
#pragma once
#include <span>

#include "base/result.h"
#include "ops/op.h"
#include "tensor/shape.h"

namespace gimbal {

// The formats of a KV cache. Quantized ones keep blocks of 32 values of one head at one position, so they
// need heads of whole blocks.
inline constexpr DTypeSet kCacheTypes = set_of(DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0);

// The shape of the output. Errors: Unsupported, naming the op, the shapes found and the rule that they break.
// Caches are [hd, heads, kPagePositions, pages] of one of kCacheTypes.
Result<Shape> output_shape(OpKind, const OpParams&, std::span<const Shape> inputs);

// The format that the activations of a matmul must have for weights of format `w`: F32 for float weights,
// else int8 codes (tensor/activations.h), as tensor/formats.def says. This is a part of what a linear layer
// means in gimbal, so it is the same on every device.
DType activation_type(DType w);

}  // namespace gimbal
