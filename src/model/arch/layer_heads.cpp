// Decoders with experts whose layers differ in their number of heads: layers with a window have more of them,
// and rotate by a base of their own. MiMo-V2-Flash, with a sink in every head of those: Xiaomi LLM-Core,
// "MiMo-V2-Flash Technical Report", 2026. Step 3.5 Flash, with a gate for every head, and limits in the
// feed-forward layers: StepFun, "Step 3.5 Flash", 2026.
#include "base/format.h"
#include "model/arch/blocks.h"
#include "model/arch/recurrent.h"

namespace gimbal::arch {
namespace {

Attention heads_of_layer(Recorder& m, int layer, int window) {
  auto a = attention_of_layer(m, layer);
  if (!a) m.hyper.fail(Code::Malformed, format("{}: layer {} has no attention heads", m.config.arch, layer));
  Attention of_layer = a ? *a : attention(m);
  if (m.hyper.flag_of("attention.sliding_window_pattern", layer)) of_layer.window = window;
  return of_layer;
}

void record_mimo2(Recorder& m) {
  ProgramBuilder& p = m.p;
  Hyperparameters& h = m.hyper;
  const int window = window_size(m);
  const Value far_angles = rope_table(m), near_angles = window_rope_table(m);
  const auto factor = float(h.number("attention.value_scale", 1));
  const Experts experts = read_experts(m, {.gating = Gating::Sigmoid});
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    Attention a = heads_of_layer(m, i, window);
    if (m.has("attn_sinks.weight")) {
      a.seen = m.seen(a.window - 1);
      a.sinks = m.vector("attn_sinks.weight", a.heads);
    }
    const Heads heads = rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)),
                                a.window ? near_angles : far_angles, RopePairs::Halves);
    const Value y = project(m, "attn_output", m.config.width, attend(m, a, heads));
    x = p.add(x, factor == 1 || factor == 0 ? y : p.scale(y, factor));
    const Value z = rms_norm(m, "ffn_norm", x);
    x = p.add(x, m.has("ffn_gate_inp.weight") ? mixture(m, experts, z) : glu(m, z));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

// Of a layer; 0: none.
float limit_of(Recorder& m, const char* key, int layer) { return float(m.hyper.number_of(key, layer, 0, 0)); }

void record_step35(Recorder& m) {
  ProgramBuilder& p = m.p;
  Hyperparameters& h = m.hyper;
  const int window = window_size(m);
  // Layers without a window rotate half as many values.
  int near_rotated = h.count("rope.dimension_count_swa", m.config.rotated);
  const int far_rotated = m.config.rotated / 2;
  if (near_rotated > m.config.head_dim) {
    h.fail(Code::Malformed, format("step35.rope.dimension_count_swa {} exceeds a head's {} values",
                                   near_rotated, m.config.head_dim));
    near_rotated = m.config.rotated;
  }
  const Value far_angles =
      m.rope({.rotated = far_rotated, .base = m.config.rope_base, .divisors = near_rotated / 2});
  const Value near_angles = m.rope({.rotated = near_rotated,
                                    .base = h.number("rope.freq_base_swa", 10000, 0),
                                    .scaled = false,
                                    .divided = false},
                                   "rope of windows");
  SparseLayers layers = read_sparse(m, {.gating = Gating::Sigmoid, .normalised = false});
  layers.dense = 0;  // dense layers are those without a router
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Attention a = heads_of_layer(m, i, window);
    const Value y = rms_norm(m, "attn_norm", x);
    Heads heads = project_heads(m, a, y);
    if (m.has("attn_q_norm.weight")) heads.q = rms_norm(m, "attn_q_norm", heads.q);
    if (m.has("attn_k_norm.weight")) heads.k = rms_norm(m, "attn_k_norm", heads.k);
    heads = rotated(m, heads, a.window ? near_angles : far_angles, RopePairs::Halves);
    Value seen = attend(m, a, heads);
    if (m.has("attn_gate.weight")) {
      const Value gate = p.map(OpKind::Sigmoid, project(m, "attn_gate", a.heads, y));
      seen = p.join_heads(p.mul(p.split_heads(seen, a.value_dim), p.split_heads(gate, 1)));
    }
    x = p.add(x, project(m, "attn_output", m.config.width, seen));

    const Value z = rms_norm(m, "ffn_norm", x);
    const float shared_limit = limit_of(m, "swiglu_clamp_shexp", i);
    layers.experts.limit = limit_of(m, "swiglu_clamp_exp", i);
    x = p.add(x, m.has("ffn_gate_inp.weight") ? sparse_feed_forward(m, layers, i, z, shared_limit)
                                              : glu(m, z, OpKind::SwiGlu, "", 0, shared_limit));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch mimo2, step35;
const ModelArch mimo2{"mimo2", record_mimo2, configure_without_nextn};
const ModelArch step35{"step35", record_step35, configure_without_nextn};

}  // namespace gimbal::arch
