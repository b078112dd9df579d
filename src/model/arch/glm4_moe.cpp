// GLM-4.5: experts that are chosen by sigmoids with a bias, a shared expert for every row, dense layers
// first; heads are rotated in part. Layers behind the last that guess further tokens are left out. GLM-4.5
// Team, "GLM-4.5: Agentic, Reasoning, and Coding (ARC) Foundation Models", 2025.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

void record(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  const int dense = m.hyper.count("leading_dense_block_count", 0, 0);
  const Experts experts = read_experts(m, {.gating = Gating::Sigmoid, .normalised = false});
  const int shared = bounded(m, "expert_shared_count and the width of an expert",
                             int64_t(m.hyper.count("expert_shared_count", 0, 0)) * experts.width);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    Heads h = project_heads(m, a, rms_norm(m, "attn_norm", x));
    if (m.has("attn_q_norm.weight")) h.q = rms_norm(m, "attn_q_norm", h.q);
    if (m.has("attn_k_norm.weight")) h.k = rms_norm(m, "attn_k_norm", h.k);
    const Value y = attend(m, a, rotated(m, h, angles, RopePairs::Halves));
    x = p.add(x, project(m, "attn_output", m.config.width, y));

    const Value z = rms_norm(m, "post_attention_norm", x);
    if (i < dense) {
      x = p.add(x, glu(m, z));
      continue;
    }
    x = p.add(x, mixture(m, experts, z));
    if (shared) x = p.add(x, glu(m, z, OpKind::SwiGlu, "_shexp", shared));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch glm4moe;
const ModelArch glm4moe{"glm4moe", record, configure_without_nextn};

}  // namespace gimbal::arch
