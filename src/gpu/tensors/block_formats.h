// The formats in blocks as numbers, for the kernels that decode and encode them.
#pragma once
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace gimbal::gpu {

// The numbers of kernels/block_fields.inc, in its order.
struct BlockFormat {
  static constexpr int kFields = 13, kNumbers = kFields + 15;
  uint32_t number[kNumbers];
  std::span<const uint16_t> table;  // of levels or grid points
};
// Of every format that a cast decodes (device/tensor_claims.h); others: without fields.
BlockFormat block_format(DType);

}  // namespace gimbal::gpu
