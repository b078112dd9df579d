// OLMo: a llama whose layer norms have no weights; q, k and v may be clamped. OLMo 2 and 3: norms behind the
// blocks instead of before them, and over all heads of q and of k together. OLMo 3, which files call olmo2 as
// well, has a window in three of four layers; their rotation is not scaled. Groeneveld et al., "OLMo:
// Accelerating the Science of Language Models", 2024; OLMo team, "2 OLMo 2 Furious", 2025; "Olmo 3", 2025.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

constexpr int kOlmo3Period = 4;

Value normed_together(Recorder& m, const std::string& name, Value heads, int head_dim) {
  return m.p.split_heads(rms_norm(m, name, m.p.join_heads(heads)), head_dim);
}

void record_olmo(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  auto normed = [&](Value v) { return p.norm(v, NormKind::Layer, m.config.norm_epsilon); };
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Heads h = rotated(m, clamped(m, project_heads(m, a, normed(x))), angles, RopePairs::Adjacent);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    x = p.add(x, glu(m, normed(x)));
  }
  logits(m, normed(wanted(m, x)));
}

void record_olmo2(Recorder& m) {
  ProgramBuilder& p = m.p;
  const int window = m.hyper.has("attention.sliding_window") ? window_size(m) : 0;
  const Attention far = attention(m);
  Attention near = far;
  near.window = window;
  const Value far_angles = rope_table(m);
  auto near_angles = [&] {
    return m.rope({.rotated = m.config.rotated, .base = m.config.rope_base, .scaled = false},
                  "rope of windows");
  };
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const bool is_near = window && has_window(m, i, kOlmo3Period);
    const Attention& a = is_near ? near : far;
    const Value angles = is_near ? near_angles() : far_angles;
    Heads h = project_heads(m, a, x);
    h.q = normed_together(m, "attn_q_norm", h.q, a.head_dim);
    h.k = normed_together(m, "attn_k_norm", h.k, a.head_dim);
    const Value y = attend(m, a, rotated(m, h, angles, RopePairs::Halves));
    x = p.add(x, rms_norm(m, "post_attention_norm", project(m, "attn_output", m.config.width, y)));
    x = p.add(x, rms_norm(m, "post_ffw_norm", glu(m, x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch olmo, olmo2;
const ModelArch olmo{"olmo", record_olmo};
const ModelArch olmo2{"olmo2", record_olmo2};

}  // namespace gimbal::arch
