// The ops that models are written in, generated from ops.def.
#pragma once
#include <stdint.h>

namespace gimbal {

enum class OpKind : uint16_t {
#define GIMBAL_OP(id, ...) id,
#include "ops/ops.def"
#undef GIMBAL_OP
  Count
};

struct OpInfo {
  const char* name;
  int fewest_inputs, most_inputs;
};
inline constexpr OpInfo kOps[] = {
#define GIMBAL_OP(id, name, fewest, most) {name, fewest, most},
#include "ops/ops.def"
#undef GIMBAL_OP
    {"no op", 0, 0}};  // OpKind::Count, so that a message can name what it was given
constexpr const OpInfo& info(OpKind k) { return kOps[int(k)]; }

// Which values Rope rotates together: neighbours (0,1), (2,3) ... or the halves (0, n/2), (1, n/2+1) ...
enum class RopePairs : int32_t { Adjacent, Halves };

// The order of Sort and ArgSort: -0 and 0 are equal, NaNs are equal and above +infinity. Equal values stay in
// the order in which they stood. TopK takes the first in falling order.
enum class SortOrder : int32_t { Rising, Falling };
// The longest row that TopK takes: places are given as f32, which holds whole numbers up to here.
inline constexpr int32_t kMostTopKWidth = 1 << 24;

// One op's small numbers; ops.def says which are used.
struct OpParams {
  float f[2] = {0, 0};
  int32_t i[2] = {0, 0};
};

// KV caches are kept in pages of this many positions; attention walks the keys in tiles of the same size.
inline constexpr int kPagePositions = 64;
// The longest attention head: kernels keep one row of it in fixed memory.
inline constexpr int kMostHeadDim = 1024;
// A dot product is the sum, in order, of the sums of chunks of this many values.
inline constexpr int kChunk = 256;

}  // namespace gimbal
