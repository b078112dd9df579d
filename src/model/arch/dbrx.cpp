// DBRX: layer norms without biases, values of q, k and v inside a limit, and experts in every layer.
// Databricks, "Introducing DBRX: A New State-of-the-Art Open LLM", 2024.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

void record_dbrx(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  m.hyper.positive("attention.clamp_kqv");  // for clamped(), which does without
  const Value angles = rope_table(m);
  const Experts experts = read_experts(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    Heads h = project_heads(m, a, layer_norm(m, "attn_norm", x));
    h = rotated(m, clamped(m, h), angles, RopePairs::Halves);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    x = p.add(x, mixture(m, experts, layer_norm(m, "attn_output_norm", x)));
  }
  logits(m, layer_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch dbrx;
const ModelArch dbrx{"dbrx", record_dbrx};

}  // namespace gimbal::arch
