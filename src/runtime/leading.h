// The first few of a token's logits, found on the device where they lie: all that most ways of sampling need,
// so that a hundred numbers come back from the device for a token and not the whole vocabulary's.
#pragma once
#include <span>
#include <vector>

#include "device/device.h"
#include "program/place.h"

namespace gimbal {

// One op: top_k of one row of logits, from the model's output slot to behind all else that lies there.
struct LeadingProgram {
  int k;
  Program program;
  std::vector<Choice> choices;
  // Of the result in the output slot: k logits in falling order, then their k ids as f32.
  uint64_t offset = 0;
};

// Programs for rising k; none where the device has no kernel for them. `logits`: of the model's program, one
// row wanted. `output_bytes`: of the output slot; grows by what the programs need.
std::vector<LeadingProgram> plan_leading(const Device&, const gimbal_value& logits, const KernelPreference&,
                                         uint64_t* output_bytes);

// Of one token; valid until the session computes again, or gives all logits.
struct Leading {
  std::span<const float> logits;  // falling; equal ones by rising id; NaN counts as the largest
  std::span<const float> ids;     // whole numbers; -1 behind the last token of a small vocabulary
};

}  // namespace gimbal
