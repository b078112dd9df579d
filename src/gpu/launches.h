// An op as launches: which kernel, what it binds, its arguments, how many groups. Made once when a program is
// compiled; buffers are put in when they are known.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "device/abi.h"
#include "gpu/cuts.h"
#include "gpu/runtime.h"

namespace gimbal::simt {

// A binding whose buffer is a slot of the program.
struct Place {
  static constexpr uint32_t kNothing = UINT32_MAX;      // a binding that the launch does not read
  static constexpr uint32_t kScratch = UINT32_MAX - 1;  // memory of the executable's own
  uint32_t slot = kNothing;
  uint32_t lead = 0;  // bytes before what is really wanted, for the alignment
  uint64_t offset = 0, bytes = 0;
};

struct PlannedLaunch {
  Place place[kMaxBindings];
  uint32_t bindings = 0;
  uint8_t params[kMaxParamBytes] = {};
  uint32_t groups[3] = {1, 1, 1};
  bool after_all = false;  // reads what launches of the same op before it wrote
};

// What a device can do at once.
struct Limits : Facts {
  uint64_t part_bytes =
      UINT64_MAX;  // a larger matrix is launched in parts; also what cannot be bound at once is
};

// What an op becomes, and what it runs over.
struct OpPlan {
  const gimbal_op& op;
  const gimbal_value* values;  // of the program
  const Limits& limits;
  const Cuts& cuts;                     // of the program's buffers
  std::vector<PlannedLaunch> launches;  // independent of each other, unless they say otherwise
  uint64_t scratch_bytes = 0;           // that they need besides
  Failure failure;                      // why it cannot be launched on this device

  const gimbal_value& in(int i) const { return values[op.in[i]]; }
  const gimbal_value& out() const { return values[op.out[0]]; }
};

// How the launches of an op are made; one of the functions below, by the kernel's row.
using Plan = void (*)(OpPlan&);
void plan_embed(OpPlan&);
void plan_mat_mul(OpPlan&);  // prompts
void plan_mat_few(OpPlan&);  // several rows, or all slots of an expert: 16 at once
void plan_mat_vec(OpPlan&);  // one row, or each slot of a row for itself
void plan_quantize(OpPlan&), plan_quantize_row(OpPlan&);
void plan_rms_norm(OpPlan&);
void plan_norm(OpPlan&);
void plan_rope(OpPlan&);
void plan_concat(OpPlan&);  // and of slice
void plan_route(OpPlan&);
void plan_combine(OpPlan&);
void plan_short_conv(OpPlan&);
void plan_selective_scan(OpPlan&);
void plan_delta_rule(OpPlan&);
void plan_elementwise(OpPlan&);
void plan_select_rows(OpPlan&);
void plan_cache_write_floats(OpPlan&);
void plan_cache_write_blocks(OpPlan&);
void plan_attention(OpPlan&);
void plan_sort(OpPlan&);  // and of argsort
void plan_top_k(OpPlan&);

}  // namespace gimbal::simt
