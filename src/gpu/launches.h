// Translates an op to launches: kernel, bindings, arguments, number of groups. Done once, when a program is
// compiled; buffers are bound later.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "device/abi.h"
#include "gpu/cuts.h"
#include "gpu/runtime.h"

namespace gimbal::gpu {

// A binding to a slot of the program.
struct Place {
  static constexpr uint32_t kNothing = UINT32_MAX;        // not read by this launch
  static constexpr uint32_t kScratch = UINT32_MAX - 1;    // the executable's scratch memory
  static constexpr uint32_t kConstants = UINT32_MAX - 2;  // OpPlan::constants
  uint32_t slot = kNothing;
  uint32_t lead = 0;  // padding bytes before the data, for alignment
  uint64_t offset = 0, bytes = 0;
};

struct PlannedLaunch {
  const char* kernel = nullptr;  // null: that of the row
  Place place[kMaxBindings];
  uint32_t bindings = 0;
  uint8_t params[kMaxParamBytes] = {};
  uint32_t groups[3] = {1, 1, 1};
  bool after_all = false;  // reads the output of earlier launches of this op
  // Changes the bindings once their buffers are known; `nothing`: unused ranges, one for each. Null: they
  // stay.
  void (*rebind)(Launch&, const Binding* nothing) = nullptr;
};

// A device's limits per launch.
struct Limits : Facts {
  uint64_t part_bytes =
      UINT64_MAX;  // larger matrices are split into several launches; also those that cannot be bound at once
};

// The launches of an op, and the inputs for planning them.
struct OpPlan {
  const gimbal_op& op;
  const gimbal_value* values;  // of the program
  const Limits& limits;
  const Cuts& cuts;                     // of the program's buffers
  std::vector<PlannedLaunch> launches;  // independent of each other unless marked
  uint64_t scratch_bytes = 0;           // scratch memory
  std::vector<uint32_t> constants;      // words that launches read, of whole 256 bytes each
  Failure failure;                      // why the device cannot run it

  const gimbal_value& in(int i) const { return values[op.in[i]]; }
  const gimbal_value& out() const { return values[op.out[0]]; }
};

// Plans the launches of an op; the kernel's row selects one of the functions below.
using Plan = void (*)(OpPlan&);
void plan_embed(OpPlan&);
void plan_mat_mul(OpPlan&);         // prompts
void plan_mat_matrix(OpPlan&);      // the same by matrix units
void plan_mat_matrix_few(OpPlan&);  // several rows, by matrix units
void plan_mat_few(OpPlan&);         // several rows, or all slots of an expert: 16 at once
void plan_mat_vec(OpPlan&);         // one row, or each slot of a row separately
void plan_quantize(OpPlan&), plan_quantize_row(OpPlan&);
void plan_rms_norm(OpPlan&);
void plan_norm(OpPlan&);
void plan_rope(OpPlan&);
void plan_hadamard(OpPlan&);
void plan_concat(OpPlan&);  // also slice
void plan_route(OpPlan&);
void plan_combine(OpPlan&);
void plan_short_conv(OpPlan&);
void plan_selective_scan(OpPlan&);
void plan_delta_rule(OpPlan&);
void plan_gated_rule(OpPlan&);
void plan_elementwise(OpPlan&);
void plan_add_scaled(OpPlan&);
void plan_select_rows(OpPlan&);
void plan_index_scores(OpPlan&), plan_keep_top(OpPlan&);
void plan_cache_write_floats(OpPlan&);
void plan_cache_write_blocks(OpPlan&);
void plan_attention(OpPlan&);
void plan_sort(OpPlan&);  // also argsort
void plan_top_k(OpPlan&);

}  // namespace gimbal::gpu
