// The ops that models are written in, generated from ops.def.
#pragma once
#include <stdint.h>

#include "base/hash.h"

namespace gimbal {

enum class OpKind : uint16_t {
#define GIMBAL_OP(number, id, ...) id = number,
#include "ops/ops.def"
};

// All ops in the order of ops.def. The numbers may have gaps.
inline constexpr OpKind kAllOps[] = {
#define GIMBAL_OP(number, id, ...) OpKind::id,
#include "ops/ops.def"
};
// The largest number plus one: the size of tables indexed by op number.
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
  OpInfo at[kOpNumbers + 1];  // by number; the last entry stands for unassigned numbers
};
inline constexpr OpTable kOps = [] {
  OpTable t{};
  for (OpInfo& i : t.at) i = {"no op", 0, 0};  // lets error messages name an unknown op
#define GIMBAL_OP(number, id, name, fewest, most) t.at[number] = {name, fewest, most};
#include "ops/ops.def"
  return t;
}();
constexpr const OpInfo& info(OpKind k) { return kOps.at[int(k) < kOpNumbers ? int(k) : kOpNumbers]; }
constexpr bool is_known(OpKind k) { return info(k).max_inputs > 0; }

// Hash of an op's name and required inputs. Plugin and host compare it to check that a number means the same
// op. Optional inputs and parameters are not included: a kernel claims those one by one (device/fit.h).
constexpr uint64_t meaning(OpKind k) {
  return Hash().add(info(k).name).add(uint64_t(info(k).min_inputs)).value();
}

// Which values Rope rotates together: neighbours (0,1), (2,3) ... or the halves (0, n/2), (1, n/2+1) ...
enum class RopePairs : int32_t { Adjacent, Halves };

// How Norm normalizes d values: (x - mean) / standard deviation; x / root mean square; x / length (the root
// of the sum of squares); or not at all.
enum class NormKind : int32_t { Layer, Rms, Length, None };

// How Route turns logits into weights: a softmax over all experts, or a sigmoid of each.
enum class Gating : int32_t { Softmax, Sigmoid };
// Limits of Route's kernels: experts, experts per row, groups of experts.
inline constexpr int kMaxExperts = 1024, kMaxChosen = 64, kMaxExpertGroups = 64;
// Which of `few` heads of q and k serves head h of `all`: h % few, or h / (all / few).
enum class HeadMap : int32_t { Modulo, Blocks };
inline constexpr int kMaxTaps = 16;  // of ShortConv
// Channels per piece of the state of SelectiveScan and DeltaRule (ops/defs/recurrent.cpp).
inline constexpr int kStateLanes = 16;

// The operands of Map that are values: both, or the other one is the number in its parameters.
enum class Operands : int32_t { Values, NumberSecond, NumberFirst };
// Of Reduce. Sums and products of integers are i64, places i32.
enum class Reduction : int32_t { Sum, Mean, Var, Prod, Min, Max, ArgMin, ArgMax, Any, All, Count };
// The order of additions of the tensor library: kSumChunk values in 16 lanes and a tree, then the sums of
// these likewise.
inline constexpr int kSumChunk = 1024;
// The parameters of Conv. Up: zeros are inserted between the values of x, so that there is one each Up places
// (transposed convolutions). FlipX, FlipY: the kernel is read backwards.
enum class ConvParam {
  StrideX,
  StrideY,
  PadX,
  PadY,
  DilateX,
  DilateY,
  Groups,
  UpX,
  UpY,
  OutX,
  OutY,
  Flip,
  Count
};
enum class Distribution : int32_t { Uniform, Normal };

// The order of Sort and ArgSort: -0 and 0 are equal, NaNs are equal and above +infinity. Both are stable.
// TopK takes the first k in falling order.
enum class SortOrder : int32_t { Rising, Falling };
// The longest row for TopK: it returns indices as f32, which represents integers exactly up to here.
inline constexpr int32_t kMaxTopKWidth = 1 << 24;

// An op's numeric parameters; ops.def states which are used. 0 means that the op behaves as without the
// parameter, so kernels that do not know a new parameter are correct where it is 0.
struct OpParams {
  double f[4] = {};
  int64_t i[16] = {};
};

// KV caches are kept in pages of this many positions; attention walks the keys in tiles of the same size.
inline constexpr int kPagePositions = 64;
// The distances to each side for which Attention takes a bias.
inline constexpr int kMaxDistances = 1024;
// The longest attention head: kernels hold one row of it in a fixed-size buffer.
inline constexpr int kMaxHeadDim = 1024;
// Added to a score of attention, it leaves the position the least weight that there is. Finite, so that a
// tile of such scores gives finite numbers, which later tiles fade away.
inline constexpr float kHidden = -1e30f;
// What Hadamard multiplies with after its sums: 1 / sqrt(n), n a power of two. The root of a half is rounded
// once, and its product with a power of two is exact.
constexpr float hadamard_factor(int64_t n) {
  float f = 1;
  for (; n >= 4; n /= 4) f /= 2;
  return n == 2 ? f * 0.707106781f : f;
}
// A dot product is the sum, in order, of the sums of chunks of this many values.
inline constexpr int kChunk = 256;

}  // namespace gimbal
