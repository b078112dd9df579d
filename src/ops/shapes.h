// Shape rules of ops: checked op by op while a program is recorded.
#pragma once
#include <span>

#include "base/result.h"
#include "ops/op.h"
#include "tensor/shape.h"

namespace gimbal {

// The formats of a KV cache. Quantized formats store blocks of 32 values of one head at one position, so the
// head size must be a multiple of 32.
inline constexpr DTypeSet kCacheTypes = set_of(DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q5_0,
                                               DType::Q4_1, DType::Q4_0, DType::IQ4_NL);

// Returns the shape of the output. Errors: Unsupported, with the op, the shapes found and the violated rule.
// Caches are [hd, heads, kPagePositions, pages] in one of kCacheTypes.
Result<Shape> output_shape(OpKind, const OpParams&, std::span<const Shape> inputs);

// The activation format of a matmul with weights of format `w`: F32 for float weights, else int8 codes
// (tensor/activations.h), as tensor/formats.def states. It is part of gimbal's definition of a linear layer
// and therefore the same on every device.
DType activation_type(DType w);

}  // namespace gimbal
