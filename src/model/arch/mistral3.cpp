// Mistral 3 ("Ministral"): a llama whose queries grow with the logarithm of the position, so that attention
// stays as sharp over a long context. Mistral AI, "Introducing Mistral 3", 2025; the factor is that of Meta,
// "The Llama 4 herd", 2025.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

void record_mistral3(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  const double growth = m.hyper.number("attention.temperature_scale", 0);
  const int original = m.hyper.count("rope.scaling.original_context_length", m.config.context);
  const bool mixed = m.hyper.count("expert_count", 0, 0) > 0;
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    Heads h = rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)), angles, RopePairs::Adjacent);
    if (growth != 0) h.q = sharpened(m, h.q, growth, original);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    const Value y = rms_norm(m, "ffn_norm", x);
    x = p.add(x, mixed ? mixture(m, read_experts(m), y) : glu(m, y));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch mistral3;
const ModelArch mistral3{"mistral3", record_mistral3};

}  // namespace gimbal::arch
