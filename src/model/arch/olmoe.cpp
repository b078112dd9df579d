// OLMoE: a llama whose feed-forward layers are mixtures of experts, with norms over all of q and all of k.
// Muennighoff et al., "OLMoE: Open Mixture-of-Experts Language Models", 2024.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

void record_olmoe(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  const Experts experts = read_experts(m, {.normalised = false});
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    Heads h = project_heads(m, a, rms_norm(m, "attn_norm", x));
    h.q = p.split_heads(rms_norm(m, "attn_q_norm", p.join_heads(h.q)), a.head_dim);
    h.k = p.split_heads(rms_norm(m, "attn_k_norm", p.join_heads(h.k)), a.head_dim);
    const Value y = attend(m, a, rotated(m, h, angles, RopePairs::Halves));
    x = p.add(x, project(m, "attn_output", m.config.width, y));
    x = p.add(x, mixture(m, experts, rms_norm(m, "ffn_norm", x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch olmoe;
const ModelArch olmoe{"olmoe", record_olmoe};

}  // namespace gimbal::arch
