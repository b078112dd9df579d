// Phi-3.5-MoE: a mixture of experts with biases, also on the norms and on the logits.
// Abdin et al., "Phi-3 Technical Report: A Highly Capable Language Model Locally on Your Phone", 2024.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

void record_phimoe(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  const Experts experts = read_experts(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Heads h = rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)), angles, RopePairs::Halves);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    x = p.add(x, mixture(m, experts, rms_norm(m, "ffn_norm", x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch phimoe;
const ModelArch phimoe{"phimoe", record_phimoe};

}  // namespace gimbal::arch
