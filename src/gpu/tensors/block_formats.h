// What kernels/decode.k and kernels/encode.k must know of the formats in blocks.
#pragma once
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace gimbal::gpu {

// The numbers of decode.k, in its order.
struct BlockFormat {
  static constexpr int kFields = 13, kNumbers = kFields + 15;
  uint32_t number[kNumbers];
  std::span<const uint16_t> table;  // of levels or grid points
};
// Of every format that a cast decodes (device/tensor_claims.h); others: without fields.
BlockFormat block_format(DType);

// The formats of encode.k: no search is needed for their codes.
inline constexpr DTypeSet kEncoded = set_of(DType::Q8_0) | set_of(DType::Q4_0) | set_of(DType::Q4_1) |
                                     set_of(DType::Q5_0) | set_of(DType::Q5_1);

}  // namespace gimbal::gpu
