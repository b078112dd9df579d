// Qwen2 and Qwen3 with a mixture of experts; Qwen2 also has a shared expert for all rows, scaled by a gate.
// Qwen3-VL is rotated in sections, as its dense form (qwen.cpp).
// GroveMoE is Qwen3 with adjugate experts: small ones that neighbouring experts share.
// Yang et al., "Qwen2 Technical Report", 2024; "Qwen3 Technical Report", 2025. Wu et al., "Grove MoE: Towards
// Efficient and Superior MoE LLMs with Adjugate Experts", 2025 (arXiv:2508.07785).
#include <algorithm>

#include "base/format.h"
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

void record_qwen2moe(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  const Experts experts = read_experts(m, {.normalised = false});
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    const Heads h =
        rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x), Bias::Needed), angles, RopePairs::Halves);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    const Value y = rms_norm(m, "ffn_norm", x);
    x = p.add(x, p.add(mixture(m, experts, y), gated_shared_expert(m, y)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

// x plus attention to it, with norms of the heads.
Value with_attention(Recorder& m, const Attention& a, Value angles, Value x) {
  Heads h = project_heads(m, a, rms_norm(m, "attn_norm", x));
  h.q = rms_norm(m, "attn_q_norm", h.q), h.k = rms_norm(m, "attn_k_norm", h.k);
  const Value y = attend(m, a, rotated(m, h, angles, RopePairs::Halves));
  return m.p.add(x, project(m, "attn_output", m.config.width, y));
}

// `deepstack`: of the first layers, whose outputs get parts of a picture's embedding.
void record_qwen3moe(Recorder& m, RopeSections sections, int deepstack) {
  const Attention a = attention(m);
  const Value angles = rope_table(m, sections);
  const Experts experts = read_experts(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    x = with_attention(m, a, angles, x);
    x = m.p.add(x, mixture(m, experts, rms_norm(m, "ffn_norm", x)));
    if (i < deepstack) x = m.add_embedded(x);
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

struct Adjugates {
  Experts experts;
  int group;  // experts that share one
  float scale;
};

Adjugates read_adjugates(Recorder& m, const Experts& all) {
  Hyperparameters& h = m.hyper;
  Adjugates a{all, h.count("experts_per_group"), float(h.number("expert_group_scale"))};
  if (all.count % a.group)
    h.fail(Code::Malformed,
           format("{} experts in groups of {}: the groups must be equally large", all.count, a.group));
  a.experts.count = std::max(1, all.count / a.group);
  a.experts.width = h.count("expert_chunk_feed_forward_length", m.config.head_dim);
  return a;
}

// Expert e's adjugate has the number e / group. Kernels read an expert's number as far as it is whole; the
// factor is a little too large, so that no multiple of the group falls below its quotient by rounding.
Value adjugate_routes(Recorder& m, const Adjugates& a, Value routes) {
  return m.p.scale(routes, float((1 + 0x1p-20) / a.group));
}

// As the authors compute it: an adjugate reads the same row as its expert, and has the expert's weight.
// llama.cpp gives it the output of the experts, and the weight of the expert that has its number.
void record_grovemoe(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  const Experts experts = read_experts(m);
  const Adjugates adjugates = read_adjugates(m, experts);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    x = with_attention(m, a, angles, x);
    const Value y = rms_norm(m, "ffn_norm", x);
    const Value routes = chosen_experts(m, experts, y);
    const Value shared =
        expert_outputs(m, adjugates.experts, y, adjugate_routes(m, adjugates, routes), "_chexps");
    const Value both = p.add(p.combine(expert_outputs(m, experts, y, routes), routes),
                             p.scale(p.combine(shared, routes), adjugates.scale));
    x = p.add(x, both);
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch qwen2moe, qwen3moe, qwen3vlmoe, grovemoe;
const ModelArch qwen2moe{"qwen2moe", record_qwen2moe};
const ModelArch qwen3moe{"qwen3moe", [](Recorder& m) { record_qwen3moe(m, RopeSections::Blocks, 0); }};
const ModelArch qwen3vlmoe{
    "qwen3vlmoe", [](Recorder& m) { record_qwen3moe(m, RopeSections::InTurn, deepstack_layers(m)); }};
const ModelArch grovemoe{"grovemoe", record_grovemoe};

}  // namespace gimbal::arch
