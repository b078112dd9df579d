// Command R and Command A: one layer norm without bias, followed by attention and feed-forward in
// parallel. Command A (cohere2) has a window in three of four layers, and rotates heads in these only; the
// largest Command R norms each head of q and k. Cohere, "C4AI Command R", 2024; "Command A: An
// Enterprise-Ready Large Language Model", 2025.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

constexpr int kCohere2Period = 4;

void record_command_r(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Value y = layer_norm(m, "attn_norm", x);
    Heads h = project_heads(m, a, y);
    if (m.has("attn_q_norm.weight")) h.q = layer_norm_by_head(m, "attn_q_norm", h.q);
    if (m.has("attn_k_norm.weight")) h.k = layer_norm_by_head(m, "attn_k_norm", h.k);
    h = rotated(m, h, angles, RopePairs::Adjacent);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    x = p.add(x, glu(m, y));
  }
  logits(m, layer_norm(m, "output_norm", wanted(m, x)), float(m.hyper.positive("logit_scale", 1)));
}

void record_cohere2(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention far = attention(m);
  Attention near = far;
  near.window = window_size(m);
  const Value angles = rope_table(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const bool is_near = has_window(m, i, kCohere2Period);
    const Attention& a = is_near ? near : far;
    const Value y = layer_norm(m, "attn_norm", x);
    Heads h = project_heads(m, a, y);
    if (is_near) h = rotated(m, h, angles, RopePairs::Adjacent);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    x = p.add(x, glu(m, y));
  }
  logits(m, layer_norm(m, "output_norm", wanted(m, x)), float(m.hyper.positive("logit_scale")));
}

// Experts in place of all dense layers but the first ones, which are rotated as layers with windows are. The
// expert for all rows and the others count half each.
void record_cohere2moe(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention far = attention(m);
  Attention near = far;
  near.window = window_size(m);
  const Value angles = rope_table(m);
  const SparseLayers layers = read_sparse(m, {.gating = Gating::Sigmoid, .normalised = false});
  const NormKind kind = m.hyper.has("attention.layer_norm_rms_epsilon") ? NormKind::Rms : NormKind::Layer;
  auto norm = [&](const std::string& name, Value x) {
    return kind == NormKind::Rms ? rms_norm(m, name, x) : layer_norm(m, name, x);
  };
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const bool is_near = has_window(m, i, kCohere2Period, FarLayer::First), is_dense = i < layers.dense;
    const Attention& a = is_near ? near : far;
    const Value y = norm("attn_norm", x);
    Heads h = project_heads(m, a, y);
    if (is_near || is_dense) h = rotated(m, h, angles, RopePairs::Adjacent);
    const Value seen = project(m, "attn_output", m.config.width, attend(m, a, h));
    const Value z = sparse_feed_forward(m, layers, i, y);
    x = p.add(p.add(is_dense || !layers.shared ? z : p.scale(z, 0.5f), x), seen);
  }
  logits(m, norm("output_norm", wanted(m, x)), float(m.hyper.positive("logit_scale")));
}

}  // namespace

extern const ModelArch command_r, cohere2, cohere2moe;
const ModelArch command_r{"command-r", record_command_r};
const ModelArch cohere2{"cohere2", record_cohere2};
const ModelArch cohere2moe{"cohere2moe", record_cohere2moe, configure_without_nextn};

}  // namespace gimbal::arch
