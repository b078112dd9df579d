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

// The formats that kernels encode without importance: ggml's formulas (encode.k), few levels
// (encode_few.k), one unit with whole scales (encode_scaled.k), offsets besides (encode_offsets.k),
// and levels of a table (encode_uneven.k).
inline constexpr DTypeSet kEncodedFew = set_of(DType::TQ1_0) | set_of(DType::TQ2_0) | set_of(DType::Q1_0) |
                                        set_of(DType::Q2_0) | set_of(DType::MXFP4) | set_of(DType::NVFP4),
                          kEncodedScaled = set_of(DType::Q3_K) | set_of(DType::Q6_K) | set_of(DType::IQ4_XS),
                          kEncodedOffsets = set_of(DType::Q2_K) | set_of(DType::Q4_K) | set_of(DType::Q5_K),
                          kEncoded = set_of(DType::Q8_0) | set_of(DType::Q4_0) | set_of(DType::Q4_1) |
                                     set_of(DType::Q5_0) | set_of(DType::Q5_1) | kEncodedFew |
                                     kEncodedScaled | kEncodedOffsets | set_of(DType::IQ4_NL);

}  // namespace gimbal::gpu
