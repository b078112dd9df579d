// Layers for multi-token prediction, which follow a model's last layer. For drafts
// (runtime/nextn_drafter.h) the first of them is a model of its own: each of its rows has a token and the
// model's state before that token. DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024; Gloeckle et al.,
// "Better & Faster Large Language Models via Multi-token Prediction", 2024.
#pragma once
#include "model/arch/blocks.h"

namespace gimbal::arch {

// The end of a model that may have such layers: output_norm, the head, and Output::States if requested.
void logits_and_states(Recorder&, Value x);

struct Nextn {
  int layer;  // its index in the file
  Value x;    // [d, R]: its input
};
// eh_proj [enorm(the token's embedding), hnorm(state)]. Sets Recorder::layer() to the layer.
Nextn begin_nextn(Recorder&);
// The layer's norm and head, or else the model's, of x, the layer's result.
void end_nextn(Recorder&, const Nextn&, Value x);

// As configure_without_nextn, with the first of these layers as the only one.
Status configure_nextn(const Metadata&, const TensorTable&, Config&);

}  // namespace gimbal::arch
