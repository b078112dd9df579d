// Decoders in which each value of the attention is multiplied by a gate, between norms before and behind
// every block; three layers in four have a window, and are rotated. Trinity (afmoe) has experts: Arcee AI,
// "Arcee Trinity Large Technical Report", 2026. Muse Glimmer has none: Meta, 2026.
#include <cmath>

#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

constexpr int kGatedPeriod = 4;
constexpr float kBehindEpsilon = 1e-8f;  // of Muse Glimmer's norms behind the blocks

Value gated_attention(Recorder& m, const Attention& a, std::optional<Value> angles, RopePairs pairs,
                      Value x) {
  ProgramBuilder& p = m.p;
  Heads h = project_heads(m, a, x);
  const Value gate = p.map(OpKind::Sigmoid, project(m, "attn_gate", a.heads * a.value_dim, x));
  h.q = rms_norm(m, "attn_q_norm", h.q), h.k = rms_norm(m, "attn_k_norm", h.k);
  if (angles) h = rotated(m, h, *angles, pairs);
  return project(m, "attn_output", m.config.width, p.mul(attend(m, a, h), gate));
}

Value windows_angles(Recorder& m) {
  return m.rope(
      {.rotated = m.config.rotated, .base = m.hyper.number("rope.freq_base_swa", m.config.rope_base, 0)},
      "rope of windows");
}

void record_afmoe(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention far = attention(m);
  Attention near = far;
  near.window = window_size(m);
  const Value far_angles = rope_table(m), near_angles = windows_angles(m);
  const SparseLayers layers = read_sparse(m, {.gating = Gating::Sigmoid, .normalised = false});
  Value x = token_embedding(m, float(std::sqrt(double(m.config.width))));
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    const bool is_near = has_window(m, i, kGatedPeriod);
    std::optional<Value> angles;
    if ((i + 1) % kGatedPeriod != 0) angles = is_near ? near_angles : far_angles;
    const Value y =
        gated_attention(m, is_near ? near : far, angles, RopePairs::Halves, rms_norm(m, "attn_norm", x));
    x = p.add(x, rms_norm(m, "post_attention_norm", y));
    const Value z = sparse_feed_forward(m, layers, i, rms_norm(m, "ffn_norm", x));
    x = p.add(x, rms_norm(m, "post_ffw_norm", z));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

void record_muse_glimmer(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention far = attention(m);
  Attention near = far;
  near.window = window_size(m);
  const Value angles = windows_angles(m);
  auto behind = [&](const std::string& name, Value y) {
    return p.rms_norm(y, m.vector(name + ".weight", m.config.width), kBehindEpsilon);
  };
  Value x = p.norm(token_embedding(m), NormKind::Rms, m.config.norm_epsilon);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    const bool is_near = has_window(m, i, kGatedPeriod);
    const Value y = gated_attention(m, is_near ? near : far, is_near ? std::optional(angles) : std::nullopt,
                                    RopePairs::Adjacent, rms_norm(m, "attn_norm", x));
    x = p.add(x, behind("post_attention_norm", y));
    x = p.add(x, behind("post_ffw_norm", glu(m, rms_norm(m, "ffn_norm", x))));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)), float(m.hyper.positive("logit_scale")),
         float(m.hyper.number("final_logit_softcapping", 0, 0)));
}

}  // namespace

extern const ModelArch afmoe, muse_glimmer;
const ModelArch afmoe{"afmoe", record_afmoe};
const ModelArch muse_glimmer{"muse-glimmer", record_muse_glimmer};

}  // namespace gimbal::arch
