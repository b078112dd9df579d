// EXAONE 4.0: norms behind the blocks, and one over each head of q and k. The large one, which is the one
// with 64 layers, has a window in three of four layers, and rotates heads in these only. LG AI Research,
// "EXAONE 4.0: Unified Large Language Models", 2025.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

constexpr int kLayersWithWindows = 64, kPeriod = 4, kWindow = 4096;

void record_exaone4(Recorder& m) {
  ProgramBuilder& p = m.p;
  // Of the whole model, even if only its first layers are computed.
  const int layers = m.hyper.count("block_count") - m.hyper.count("nextn_predict_layers", 0, 0);
  const bool windows = layers == kLayersWithWindows;
  const Attention far = attention(m);
  Attention near = far;
  if (windows) near.window = window_size(m, kWindow);
  const Value angles = rope_table(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const bool is_near = windows && has_window(m, i, kPeriod);
    const Attention& a = is_near ? near : far;
    Heads h = project_heads(m, a, x);
    h.q = rms_norm(m, "attn_q_norm", h.q), h.k = rms_norm(m, "attn_k_norm", h.k);
    if (is_near || !windows) h = rotated(m, h, angles, RopePairs::Halves);
    const Value y = project(m, "attn_output", m.config.width, attend(m, a, h));
    x = p.add(x, rms_norm(m, "post_attention_norm", y));
    x = p.add(x, rms_norm(m, "post_ffw_norm", glu(m, x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch exaone4;
const ModelArch exaone4{"exaone4", record_exaone4, configure_without_nextn};

}  // namespace gimbal::arch
