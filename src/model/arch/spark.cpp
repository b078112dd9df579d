// Spark 2.5: GELU gates, a window in the layers that files list, and a gate for each head's result of
// attention. iFlytek, "Spark 2.5", 2026; Qiu et al., "Gated Attention for Large Language Models", 2025.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

// y [heads * value_dim, R] of attention, each head times the sigmoid of its row of attn_gate x.
Value gated_heads(Recorder& m, const Attention& a, Value x, Value y) {
  ProgramBuilder& p = m.p;
  const Value gate = p.map(OpKind::Sigmoid, project(m, "attn_gate", a.heads, x));
  return p.join_heads(p.mul(p.split_heads(y, a.value_dim), p.split_heads(gate, 1)));
}

void record_spark(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention far = attention(m);
  Attention near = far;
  near.window = window_size(m);
  const Value far_angles = rope_table(m),
              near_angles = m.rope({.rotated = m.config.rotated,
                                    .base = m.hyper.number("rope.freq_base_swa", m.config.rope_base, 0)},
                                   "rope of windows");
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const bool is_near = m.hyper.flag_of("attention.sliding_window_pattern", i);
    const Attention& a = is_near ? near : far;
    const Value y = rms_norm(m, "attn_norm", x);
    const Heads h = rotated(m, project_heads(m, a, y), is_near ? near_angles : far_angles, RopePairs::Halves);
    x = p.add(x, project(m, "attn_output", m.config.width, gated_heads(m, a, y, attend(m, a, h))));
    x = p.add(x, glu(m, rms_norm(m, "ffn_norm", x), OpKind::GeluGlu));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch spark2_5;
const ModelArch spark2_5{"spark2_5", record_spark};

}  // namespace gimbal::arch
