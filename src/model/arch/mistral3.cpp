// Mistral 3 ("Ministral"): a llama whose queries grow with the logarithm of the position, so that attention
// stays as sharp over a long context. Mistral AI, "Introducing Mistral 3", 2025; the factor is that of Meta,
// "The Llama 4 herd", 2025.
#include <cstring>

#include "base/fixed_math.h"
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

// f32[1, R]: 1 + growth * ln(1 + how often the position goes into the original context)
Value temperature(Recorder& m) {
  const double growth = m.hyper.number("attention.temperature_scale", 0);
  const int original = m.hyper.count("rope.scaling.original_context_length", m.config.context);
  return m.row_input("temperature", DType::F32, 1, [=](const StepRow& r, std::byte* to) {
    const auto factor = float(1 + growth * fixed::log(double(r.position / original + 1)));
    std::memcpy(to, &factor, sizeof factor);
  });
}

void record(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  const bool grows = m.hyper.has("attention.temperature_scale");
  const bool mixed = m.hyper.count("expert_count", 0, 0) > 0;
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    Heads h = rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)), angles, RopePairs::Adjacent);
    if (grows) h.q = p.split_heads(p.mul(p.join_heads(h.q), temperature(m)), a.head_dim);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    const Value y = rms_norm(m, "ffn_norm", x);
    x = p.add(x, mixed ? mixture(m, read_experts(m), y) : glu(m, y));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch mistral3;
const ModelArch mistral3{"mistral3", record};

}  // namespace gimbal::arch
