// The ops that models are written in, generated from ops.def.
#pragma once
#include <stdint.h>

#include "base/hash.h"

namespace gimbal {

enum class OpKind : uint16_t {
#define GIMBAL_OP(number, id, ...) id = number,
#include "ops/ops.def"
};

// All of them, in the order of ops.def. Their numbers may have gaps.
inline constexpr OpKind kAllOps[] = {
#define GIMBAL_OP(number, id, ...) OpKind::id,
#include "ops/ops.def"
};
// One more than the largest number: the size of a table that an op's number is the index of.
inline constexpr int kOpNumbers = [] {
  int most = 0;
  for (OpKind k : kAllOps) most = int(k) > most ? int(k) : most;
  return most + 1;
}();

struct OpInfo {
  const char* name;
  int min_inputs, max_inputs;
};
struct OpTable {
  OpInfo at[kOpNumbers + 1];  // by number; the last one for numbers that no op has
};
inline constexpr OpTable kOps = [] {
  OpTable t{};
  for (OpInfo& i : t.at) i = {"no op", 0, 0};  // so that a message can name what it was given
#define GIMBAL_OP(number, id, name, fewest, most) t.at[number] = {name, fewest, most};
#include "ops/ops.def"
  return t;
}();
constexpr const OpInfo& info(OpKind k) { return kOps.at[int(k) < kOpNumbers ? int(k) : kOpNumbers]; }
constexpr bool is_known(OpKind k) { return info(k).max_inputs > 0; }

// What a plugin and its host must mean alike by an op's number. Optional inputs and parameters are not in it:
// a kernel that does not claim them is not asked for them (device/fit.h).
constexpr uint64_t meaning(OpKind k) {
  return Hash().add(info(k).name).add(uint64_t(info(k).min_inputs)).value();
}

// Which values Rope rotates together: neighbours (0,1), (2,3) ... or the halves (0, n/2), (1, n/2+1) ...
enum class RopePairs : int32_t { Adjacent, Halves };

// What Norm makes of d values: less their mean, over their standard deviation; over the root of their mean
// square; over their length (the root of the sum of squares); or as they are.
enum class NormKind : int32_t { Layer, Rms, Length, None };

// How Route makes weights of logits: a softmax over all experts, or each by itself.
enum class Gating : int32_t { Softmax, Sigmoid };
// What kernels of Route have room for: experts, chosen ones, groups of experts.
inline constexpr int kMaxExperts = 1024, kMaxChosen = 64, kMaxExpertGroups = 64;
// Which of `few` heads of q and k serves head h of `all`: h % few, or h / (all / few).
enum class HeadMap : int32_t { Modulo, Blocks };
inline constexpr int kMaxTaps = 16;  // of ShortConv
// Channels of a piece of the state that SelectiveScan and DeltaRule keep (ops/defs/recurrent.cpp).
inline constexpr int kStateLanes = 16;

// The order of Sort and ArgSort: -0 and 0 are equal, NaNs are equal and above +infinity. Equal values stay in
// the order in which they stood. TopK takes the first in falling order.
enum class SortOrder : int32_t { Rising, Falling };
// The longest row that TopK takes: places are given as f32, which holds whole numbers up to here.
inline constexpr int32_t kMaxTopKWidth = 1 << 24;

// One op's small numbers; ops.def says which are used. 0 is as if the op did not have the parameter, so that
// kernels which know nothing of a new one are right where it is 0.
struct OpParams {
  double f[4] = {};
  int64_t i[16] = {};
};

// KV caches are kept in pages of this many positions; attention walks the keys in tiles of the same size.
inline constexpr int kPagePositions = 64;
// The longest attention head: kernels keep one row of it in fixed memory.
inline constexpr int kMaxHeadDim = 1024;
// A dot product is the sum, in order, of the sums of chunks of this many values.
inline constexpr int kChunk = 256;

}  // namespace gimbal
