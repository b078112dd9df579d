// The number formats that caches have, for the model checker, which cannot read the tables of
// src/tensor/format.h. Proofs use no format of weights.
#pragma once
#include <cstdint>

namespace gimbal {

enum class DType : uint8_t { F32, F16, BF16, Q8_0, Q4_0, A8_32, A8_256, A8_ROW };
enum class Scales : uint8_t { OfBlock, Halves, Brains, Unsigned, Signed, Odd, Paired };
struct Format {
  DType x;
  bool tensor_scale, minimums;
  int bytes, nibbles, pairs, bits, shifts, group;
  Scales scales;
};
constexpr Format format_of(DType) { return {}; }
inline constexpr int64_t kChunk = 256;

}  // namespace gimbal
