// OpenELM: a llama whose layers differ in their number of heads and the width of their feed-forward layer;
// each head of q and k is normed, then rotated by halves. Mehta et al., "OpenELM: An Efficient Language Model
// Family with Open Training and Inference Framework", 2024.
#include "model/arch/recurrent.h"

namespace gimbal::arch {
namespace {

Value openelm_attention(Recorder& m, const Attention& a, Value angles, Value x) {
  Heads h = project_heads(m, a, x);
  h.q = rms_norm(m, "attn_q_norm", h.q), h.k = rms_norm(m, "attn_k_norm", h.k);
  return project(m, "attn_output", m.config.width, attend(m, a, rotated(m, h, angles, RopePairs::Halves)));
}

void record_openelm(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Value angles = rope_table(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const auto a = attention_of_layer(m, i);
    if (!a) {
      m.hyper.fail(Code::Malformed, "openelm: layer " + std::to_string(i) + " has no heads of keys");
      return;
    }
    x = p.add(x, openelm_attention(m, *a, angles, rms_norm(m, "attn_norm", x)));
    x = p.add(x, glu(m, rms_norm(m, "ffn_norm", x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch openelm;
const ModelArch openelm{"openelm", record_openelm};

}  // namespace gimbal::arch
