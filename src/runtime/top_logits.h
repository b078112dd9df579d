// The largest few of a row's logits, found on the device. Most sampling settings need no more, so a token
// transfers about a hundred numbers from the device, not the whole vocabulary's.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "program/place.h"

namespace gimbal {

// One op: top_k of a step's rows of logits, from the model's output slot to the end of the same
// slot.
struct TopLogitsProgram {
  int k;
  Program program;
  std::vector<Choice> choices;
  // Of the result, in the output slot: for each row k logits in falling order, then their k ids as f32.
  uint64_t offset = 0;
};

// Programs for rising k; empty if the device has no kernel for them. `logits`: of the model's program.
// `rows`: the most rows with logits in a step. `output_bytes`: of the output slot; grows by the results of
// the programs.
std::vector<TopLogitsProgram> plan_top_logits(const Device&, const gimbal_value& logits, int rows,
                                              const KernelPreference&, uint64_t* output_bytes);

// Of one row; valid until the model computes again.
struct TopLogits {
  std::span<const float> logits;  // falling; equal ones by rising id; NaN counts as the largest
  std::span<const float> ids;     // whole numbers; -1 behind the last token of a small vocabulary
};

// Digests of rows of logits, for certificates of answers (src/audit). They cover the largest logits of every
// row, and all logits of every kDigestFull-th: enough to tell two computations apart, at a cost below one
// percent of generating a token.
inline constexpr int kDigestTop = 8, kDigestFull = 32;

// SHA-256 in hex of: index (u32), the number n of logits (u32), n largest logits with their ids (f32, i32;
// falling, equal ones by rising id), and of all logits (f32), if `all` is not empty. Little-endian. `top`: at
// least kDigestTop of them, or all of a smaller vocabulary.
std::string row_digest(int index, const TopLogits& top, std::span<const float> all = {});
// The same with the largest of `all`. Those of all logits are added if the index is a multiple of
// kDigestFull.
std::string row_digest(int index, std::span<const float> all);

}  // namespace gimbal
