// Grok: scores that a tanh caps, norms before and behind every block, experts with GELU; Grok 2 also has a
// dense feed-forward layer beside them. xAI, "Open Release of Grok-1", 2024.
#include <cmath>

#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

// Of Grok 1, whose files need not have them: 1 / sqrt(3), sqrt(6144), 1 / sqrt(128).
constexpr double kLogits = 0.5773502691896257, kEmbedding = 78.38367176906169, kScores = 0.08838834764831845,
                 kCap = 30, kBetaFast = 8;

void record_grok(Recorder& m) {
  ProgramBuilder& p = m.p;
  Hyperparameters& h = m.hyper;
  Attention a = attention(m);
  a.scale = float(h.positive("attention.output_scale", kScores));
  a.cap = float(h.positive("attn_logit_softcapping", kCap));
  const Value angles =
      m.rope({.rotated = m.config.rotated, .base = m.config.rope_base, .beta_fast = kBetaFast});
  Experts experts = read_experts(m);
  experts.activation = OpKind::GeluGlu;
  Value x = token_embedding(m, float(h.positive("embedding_scale", kEmbedding)));
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Heads heads =
        rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)), angles, RopePairs::Halves);
    Value y = project(m, "attn_output", m.config.width, attend(m, a, heads));
    x = p.add(x, rms_norm(m, "attn_output_norm", y));

    const Value z = rms_norm(m, "ffn_norm", x);
    y = mixture(m, experts, z);
    if (m.has("ffn_up.weight")) y = p.scale(p.add(glu(m, z, OpKind::GeluGlu), y), float(std::sqrt(0.5)));
    x = p.add(x, rms_norm(m, m.has("layer_output_norm.weight") ? "layer_output_norm" : "post_ffw_norm", y));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)), float(h.positive("logit_scale", kLogits)),
         float(h.number("final_logit_softcapping", 0, 0)));
}

}  // namespace

extern const ModelArch grok;
const ModelArch grok{"grok", record_grok};

}  // namespace gimbal::arch
