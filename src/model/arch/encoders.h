// What encoders share: every row sees all others of its text, and a reranker has a head for scores.
#pragma once
#include "model/arch/blocks.h"

namespace gimbal::arch {

// attention(), to earlier and later rows. A file that asks for causal attention is an error.
Attention all_seen(Recorder&);
// The scores of a reranker: one number per row; the higher, the better the two parts of its text match.
// Other models: x [d, R] as it is.
Value ranked(Recorder&, Value x);

}  // namespace gimbal::arch
