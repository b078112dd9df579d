// Layers that guess further tokens (multi-token prediction). They lie behind a model's last layer; for drafts
// (runtime/nextn_drafter.h) the first of them is computed as a model of its own, whose rows have a token and
// the state that the model had before it. DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024; Gloeckle et al.,
// "Better & Faster Large Language Models via Multi-token Prediction", 2024.
#pragma once
#include "model/arch/blocks.h"

namespace gimbal::arch {

// The end of a model that may have such layers: output_norm, the head, and Output::States where it is wanted.
void logits_and_states(Recorder&, Value x);

struct Nextn {
  int layer;  // which one of the file
  Value x;    // [d, R]: what it is given
};
// eh_proj [enorm(the token's embedding), hnorm(state)]. Recorder::layer() is the layer then.
Nextn begin_nextn(Recorder&);
// The layer's norm and head, or the model's, of what the layer makes of Nextn::x.
void end_nextn(Recorder&, const Nextn&, Value x);

// As configure_without_nextn, with the first of these layers as the only one.
Status configure_nextn(const Metadata&, const TensorTable&, Config&);

}  // namespace gimbal::arch
