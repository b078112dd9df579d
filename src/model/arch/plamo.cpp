// PLaMo: one norm, followed by attention and feed-forward in parallel; all values of a head are rotated by
// halves. PLaMo 2: a norm before and behind each block, and Mamba in place of attention in most layers. PLaMo
// 3: the same norms, and a window in seven of eight layers, which rotate heads by another base. Preferred
// Networks, "PLaMo-13B", 2023; "PLaMo 2", 2025; "PLaMo 3", 2025.
#include "model/arch/recurrent.h"

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

// Each head has a norm of its own.
Value norm_by_head(Recorder& m, const std::string& name, Value x) {
  const Value weight = m.table(name + ".weight", width_of(m, x), int(m.p.shape(x).dim[1]));
  return m.p.norm(x, NormKind::Rms, m.config.norm_epsilon, weight);
}

Value plamo2_attention(Recorder& m, const Attention& a, Value angles, Value x) {
  Heads h = project_heads(m, a, x);
  h.q = norm_by_head(m, "attn_q_norm", h.q), h.k = norm_by_head(m, "attn_k_norm", h.k);
  const Value y = attend(m, a, rotated(m, h, angles, RopePairs::Halves));
  return project(m, "attn_output", m.config.width, y);
}

void record_plamo2(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Value angles = rope_table(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    const Value y = rms_norm(m, "attn_norm", x);
    const auto a = attention_of_layer(m, i);
    x = p.add(x, norm_behind(m, "post_attention_norm",
                             a ? plamo2_attention(m, *a, angles, y) : plamo2_mixer(m, y)));
    x = p.add(x, norm_behind(m, "post_ffw_norm", glu(m, rms_norm(m, "ffn_norm", x))));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
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

extern const ModelArch plamo, plamo2, plamo3;
const ModelArch plamo{"plamo", record_plamo};
const ModelArch plamo2{"plamo2", record_plamo2};
const ModelArch plamo3{"plamo3", record_plamo3};

}  // namespace gimbal::arch
