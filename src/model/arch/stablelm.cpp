// StableLM and Orion: llamas with layer norms, part or all of each head rotated by halves. StableLM's 12B
// norms each head of q and k, and has attention and feed-forward in parallel after one norm. Bellagente et
// al., "Stable LM 2 1.6B Technical Report", 2024; Chen et al., "Orion-14B: Open-source Multilingual Large
// Language Models", 2024.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

void record_stablelm(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Value y = layer_norm(m, "attn_norm", x, Bias::Needed);
    Heads h = project_heads(m, a, y);
    if (m.has("attn_q_norm.weight")) h.q = layer_norm_by_head(m, "attn_q_norm", h.q);
    if (m.has("attn_k_norm.weight")) h.k = layer_norm_by_head(m, "attn_k_norm", h.k);
    h = rotated(m, h, angles, RopePairs::Halves);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    const bool parallel = !m.has("ffn_norm.weight");
    x = p.add(x, glu(m, parallel ? y : layer_norm(m, "ffn_norm", x, Bias::Needed)));
  }
  logits(m, layer_norm(m, "output_norm", wanted(m, x), Bias::Needed));
}

}  // namespace

extern const ModelArch stablelm, orion;
const ModelArch stablelm{"stablelm", record_stablelm};
const ModelArch orion{"orion", record_stablelm};

}  // namespace gimbal::arch
