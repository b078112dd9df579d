// SmallThinker: experts, with ReLU, that are chosen by the layer's input, before its attention; three layers
// in four have a window, and are rotated. Song et al., "SmallThinker: A Family of Efficient Large Language
// Models Natively Trained for Local Deployment", 2025.
#include "base/format.h"
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

constexpr int kThinkerPeriod = 4;
constexpr int kThinkerWindow = 4096;

void record_smallthinker(Recorder& m) {
  ProgramBuilder& p = m.p;
  // 0 is the window of models without any, all of whose layers are rotated; another one is not in files.
  const int window = m.hyper.count("attention.sliding_window", 0, 0);
  if (window != 0 && window != kThinkerWindow)
    m.hyper.fail(
        Code::Unsupported,
        format("smallthinker.attention.sliding_window is {}; this version computes windows of {}, or "
               "none (0)",
               window, kThinkerWindow));
  const Attention far = attention(m);
  Attention near = far;
  near.window = window;
  const Value far_angles = rope_table(m);
  const Value near_angles = m.rope(
      {.rotated = m.config.rotated, .base = m.hyper.number("rope.freq_base_swa", m.config.rope_base, 0)},
      "rope of windows");
  Experts experts = read_experts(m);
  experts.activation = OpKind::Relu;
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Value scores = project(m, "ffn_gate_inp", experts.count, x);
    const bool is_near = window && has_window(m, i, kThinkerPeriod, FarLayer::First);
    Heads h = project_heads(m, far, rms_norm(m, "attn_norm", x));
    if (!window || i % kThinkerPeriod != 0)
      h = rotated(m, h, is_near ? near_angles : far_angles, RopePairs::Halves);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, is_near ? near : far, h)));
    x = p.add(x, mixture(m, experts, rms_norm(m, "ffn_norm", x), scores));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch smallthinker;
const ModelArch smallthinker{"smallthinker", record_smallthinker};

}  // namespace gimbal::arch
