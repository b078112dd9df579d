// gpt-oss: experts with biases and a clamped gate, a window on every second layer, and a learned weight per
// head that attention may put on nothing at all.
// OpenAI, "gpt-oss-120b & gpt-oss-20b Model Card", 2025.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

// max(gate, 7) times its sigmoid, and so on: ops/defs/elementwise.cpp.
constexpr float kGateLimit = 7;

void record_gpt_oss(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention all = attention(m);
  const int window = window_size(m);
  const Value angles = rope_table(m);
  // The softmax over the chosen experts only.
  Experts experts = read_experts(m);
  experts.activation = OpKind::ClampedSwiGlu, experts.limit = kGateLimit;
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    Attention a = all;
    if (has_window(m, i, 2)) a.window = window;
    a.seen = m.seen(a.window - 1);
    a.sinks = m.vector("attn_sinks.weight", a.heads);
    const Heads h =
        rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x), Bias::Needed), angles, RopePairs::Halves);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h), Bias::Needed));
    x = p.add(x, mixture(m, experts, rms_norm(m, "post_attention_norm", x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch gpt_oss;
const ModelArch gpt_oss{"gpt-oss", record_gpt_oss};

}  // namespace gimbal::arch
