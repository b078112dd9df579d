// LFM2: short convolutions between gates, and attention in some layers; with experts in its MoE form.
// Liquid AI, "LFM2 Technical Report", 2025.
#include "model/arch/recurrent.h"

namespace gimbal::arch {
namespace {

Value mixed(Recorder& m, Value angles, Value x, int layer) {
  auto a = attention_of_layer(m, layer);
  if (!a) return short_convolution(m, x);
  if (m.hyper.has("attention.sliding_window")) a->window = window_size(m);
  Heads h = project_heads(m, *a, x);
  h.q = rms_norm(m, "attn_q_norm", h.q), h.k = rms_norm(m, "attn_k_norm", h.k);
  return project(m, "attn_output", m.config.width, attend(m, *a, rotated(m, h, angles, RopePairs::Halves)));
}

// The first `dense` layers have no experts.
void record_lfm2(Recorder& m, int dense) {
  ProgramBuilder& p = m.p;
  const Value angles = rope_table(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    x = p.add(x, mixed(m, angles, rms_norm(m, "attn_norm", x), i));
    const Value y = rms_norm(m, "ffn_norm", x);
    x = p.add(x, i < dense ? glu(m, y) : mixture(m, read_experts(m, {.gating = Gating::Sigmoid}), y));
  }
  // Despite its name in the file, this is the norm after all layers.
  logits(m, rms_norm(m, "token_embd_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch lfm2, lfm2moe;
const ModelArch lfm2{"lfm2", [](Recorder& m) { record_lfm2(m, m.config.layers); }};
const ModelArch lfm2moe{
    "lfm2moe", [](Recorder& m) { record_lfm2(m, m.hyper.count("leading_dense_block_count", 0, 0)); }};

}  // namespace gimbal::arch
