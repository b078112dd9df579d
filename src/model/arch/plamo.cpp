// PLaMo: one norm, followed by attention and feed-forward in parallel; all values of a head are rotated by
// halves. PLaMo 3: a norm before and behind each block and over each head of q and k, and a window in seven
// of eight layers, which rotate heads by another base. Preferred Networks, "PLaMo-13B", 2023; "PLaMo 3",
// 2025.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

constexpr int kPlamo3Period = 8;

void record_plamo(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = m.rope({.rotated = m.config.head_dim, .base = m.config.rope_base});
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Value y = rms_norm(m, "attn_norm", x);
    const Heads h = rotated(m, project_heads(m, a, y), angles, RopePairs::Halves);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    x = p.add(x, glu(m, y));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

// The name of a norm behind a block has no ".weight" in files.
Value norm_behind(Recorder& m, const std::string& name, Value x) {
  return m.p.rms_norm(x, m.vector(name, m.config.width), m.config.norm_epsilon);
}

void record_plamo3(Recorder& m) {
  ProgramBuilder& p = m.p;
  const bool windows = m.hyper.count("attention.sliding_window", 0, 0) > 0;
  const Attention far = attention(m);
  Attention near = far;
  if (windows) near.window = window_size(m);
  const Value far_angles = rope_table(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const bool is_near = windows && has_window(m, i, kPlamo3Period);
    const Attention& a = is_near ? near : far;
    const Value angles = is_near ? window_rope_table(m) : far_angles;
    Heads h = project_heads(m, a, rms_norm(m, "attn_norm", x));
    h.q = rms_norm(m, "attn_q_norm", h.q), h.k = rms_norm(m, "attn_k_norm", h.k);
    const Value y = attend(m, a, rotated(m, h, angles, RopePairs::Halves));
    x = p.add(x, norm_behind(m, "post_attention_norm", project(m, "attn_output", m.config.width, y)));
    x = p.add(x, norm_behind(m, "post_ffw_norm", glu(m, rms_norm(m, "ffn_norm", x))));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch plamo, plamo3;
const ModelArch plamo{"plamo", record_plamo};
const ModelArch plamo3{"plamo3", record_plamo3};

}  // namespace gimbal::arch
