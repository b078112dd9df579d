// Qwen2 and Qwen3 with a mixture of experts; Qwen2 also has a shared expert for all rows, scaled by a gate.
// Qwen3-VL is rotated in sections, as its dense form (qwen.cpp).
// Yang et al., "Qwen2 Technical Report", 2024; "Qwen3 Technical Report", 2025.
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

// `deepstack`: of the first layers, whose outputs get parts of a picture's embedding.
void record_qwen3moe(Recorder& m, RopeSections sections, int deepstack) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m, sections);
  const Experts experts = read_experts(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    Heads h = project_heads(m, a, rms_norm(m, "attn_norm", x));
    h.q = rms_norm(m, "attn_q_norm", h.q), h.k = rms_norm(m, "attn_k_norm", h.k);
    const Value y = attend(m, a, rotated(m, h, angles, RopePairs::Halves));
    x = p.add(x, project(m, "attn_output", m.config.width, y));
    x = p.add(x, mixture(m, experts, rms_norm(m, "ffn_norm", x)));
    if (i < deepstack) x = m.add_embedded(x);
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch qwen2moe, qwen3moe, qwen3vlmoe;
const ModelArch qwen2moe{"qwen2moe", record_qwen2moe};
const ModelArch qwen3moe{"qwen3moe", [](Recorder& m) { record_qwen3moe(m, RopeSections::Blocks, 0); }};
const ModelArch qwen3vlmoe{
    "qwen3vlmoe", [](Recorder& m) { record_qwen3moe(m, RopeSections::InTurn, deepstack_layers(m)); }};

}  // namespace gimbal::arch
