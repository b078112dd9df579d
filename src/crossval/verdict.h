// The verdict of a cross-validation, and its reason in words.
#pragma once
#include "crossval/crossval.h"

namespace gimbal::crossval {

// Sets `verdict` and `reason`. In this order the first divergence counts: token ids, layers, logits, greedy
// tokens. A difference that rounding explains is no divergence; without a reference a difference has no
// verdict. Differences of layers count only if the logits behind them differ, too: else the library marks
// another value as the layer's output.
void decide(CrossvalReport&);

}  // namespace gimbal::crossval
