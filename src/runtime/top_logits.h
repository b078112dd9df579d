// The largest few of a row's logits, found on the device where they lie: all that most ways of sampling need,
// so that a hundred numbers come back from the device for a token and not the whole vocabulary's.
#pragma once
#include <span>
#include <vector>

#include "device/device.h"
#include "program/place.h"

namespace gimbal {

// One op: top_k of the rows of logits that a step gives, from the model's output slot to behind all else that
// lies there.
struct TopLogitsProgram {
  int k;
  Program program;
  std::vector<Choice> choices;
  // Of the result in the output slot: for each row k logits in falling order, then their k ids as f32.
  uint64_t offset = 0;
};

// Programs for rising k; none where the device has no kernel for them. `logits`: of the model's program.
// `rows`: that logits can be asked for in a step. `output_bytes`: of the output slot; grows by what the
// programs need.
std::vector<TopLogitsProgram> plan_top_logits(const Device&, const gimbal_value& logits, int rows,
                                              const KernelPreference&, uint64_t* output_bytes);

// Of one row; valid until the model computes again.
struct TopLogits {
  std::span<const float> logits;  // falling; equal ones by rising id; NaN counts as the largest
  std::span<const float> ids;     // whole numbers; -1 behind the last token of a small vocabulary
};

}  // namespace gimbal
