// Digests of rows of logits, for certificates of answers (src/audit). They cover the largest logits of every
// row, and all logits of every kDigestFull-th: enough to tell two computations apart, at a cost below one
// percent of generating a token.
#pragma once
#include <span>
#include <string>

#include "runtime/top_logits.h"

namespace gimbal {

inline constexpr int kDigestTop = 8, kDigestFull = 32;

// SHA-256 in hex of: index (u32), the number n of logits (u32), n largest logits with their ids (f32, i32;
// falling, equal ones by rising id), and of all logits (f32), if `all` is not empty. Little-endian. `top`: at
// least kDigestTop of them, or all of a smaller vocabulary.
std::string row_digest(int index, const TopLogits& top, std::span<const float> all = {});
// The same with the largest of `all`. Those of all logits are added if the index is a multiple of
// kDigestFull.
std::string row_digest(int index, std::span<const float> all);

}  // namespace gimbal
