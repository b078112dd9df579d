// GLM-4.5: experts that are chosen by sigmoids with a bias, a shared expert for every row, dense layers
// first; heads are rotated in part. GLM-4.5 Team, "GLM-4.5: Agentic, Reasoning, and Coding (ARC) Foundation
// Models", 2025.
#include "model/arch/blocks.h"
#include "model/arch/nextn.h"

namespace gimbal::arch {
namespace {

struct Glm4MoeLayers {
  Attention attention;
  Value angles;
  SparseLayers feed_forward;
};

Glm4MoeLayers read_glm4_moe_layers(Recorder& m) {
  return {attention(m), rope_table(m), read_sparse(m, {.gating = Gating::Sigmoid, .normalised = false})};
}

Value layer(Recorder& m, const Glm4MoeLayers& l, int i, Value x) {
  ProgramBuilder& p = m.p;
  Heads h = project_heads(m, l.attention, rms_norm(m, "attn_norm", x));
  if (m.has("attn_q_norm.weight")) h.q = rms_norm(m, "attn_q_norm", h.q);
  if (m.has("attn_k_norm.weight")) h.k = rms_norm(m, "attn_k_norm", h.k);
  const Value y = attend(m, l.attention, rotated(m, h, l.angles, RopePairs::Halves));
  x = p.add(x, project(m, "attn_output", m.config.width, y));

  const Value z = rms_norm(m, "post_attention_norm", x);
  const SparseLayers& f = l.feed_forward;
  if (i < f.dense) return p.add(x, glu(m, z));
  x = p.add(x, mixture(m, f.experts, z));
  return f.shared ? p.add(x, glu(m, z, OpKind::SwiGlu, "_shexp", f.shared)) : x;
}

void record_glm4_moe(Recorder& m) {
  const Glm4MoeLayers l = read_glm4_moe_layers(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    x = layer(m, l, i, x);
  }
  logits_and_states(m, x);
}

void record_glm4_moe_nextn(Recorder& m) {
  const Glm4MoeLayers l = read_glm4_moe_layers(m);
  const Nextn n = begin_nextn(m);
  end_nextn(m, n, layer(m, l, n.layer, n.x));
}

const ModelArch glm4moe_nextn{"glm4moe", record_glm4_moe_nextn, configure_nextn};

}  // namespace

extern const ModelArch glm4moe;
const ModelArch glm4moe{"glm4moe", record_glm4_moe, configure_without_nextn, false, &glm4moe_nextn};

}  // namespace gimbal::arch
