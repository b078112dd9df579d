// Muse Glimmer: norms before and behind each block and over each head of q and k, a gate for every value of
// attention's result; three of four layers have a window, and only these rotate heads. Meta, "Muse Glimmer",
// 2026.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

constexpr int kMusePeriod = 4;
constexpr float kEpsilonBehind = 1e-8f;  // of the norms behind a block

Value muse_norm_behind(Recorder& m, const std::string& name, Value x) {
  return m.p.rms_norm(x, m.vector(name + ".weight", m.config.width), kEpsilonBehind);
}

void record_muse(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention far = attention(m);
  Attention near = far;
  near.window = window_size(m);
  const Value angles = m.rope(
      {.rotated = m.config.rotated, .base = m.hyper.number("rope.freq_base_swa", m.config.rope_base, 0)});
  Value x = p.norm(token_embedding(m), NormKind::Rms, m.config.norm_epsilon);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const bool is_near = has_window(m, i, kMusePeriod);
    const Attention& a = is_near ? near : far;
    const Value y = rms_norm(m, "attn_norm", x);
    Heads h = project_heads(m, a, y);
    h.q = rms_norm(m, "attn_q_norm", h.q), h.k = rms_norm(m, "attn_k_norm", h.k);
    if (is_near) h = rotated(m, h, angles, RopePairs::Adjacent);
    const Value seen = attend(m, a, h);
    const Value gate = p.map(OpKind::Sigmoid, project(m, "attn_gate", a.heads * a.value_dim, y));
    const Value z = project(m, "attn_output", m.config.width, p.mul(seen, gate));
    x = p.add(x, muse_norm_behind(m, "post_attention_norm", z));
    x = p.add(x, muse_norm_behind(m, "post_ffw_norm", glu(m, rms_norm(m, "ffn_norm", x))));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)), float(m.hyper.positive("logit_scale")),
         float(m.hyper.number("final_logit_softcapping", 0, 0)));
}

}  // namespace

extern const ModelArch muse_glimmer;
const ModelArch muse_glimmer{"muse-glimmer", record_muse};

}  // namespace gimbal::arch
