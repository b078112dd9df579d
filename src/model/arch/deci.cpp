// Llamas that a search has thinned out (DeciLM, Llama-Nemotron): heads of keys and the width of the
// feed-forward layer differ by layer; attention may be one product, or missing, and so may the feed-forward
// layer. Bercovich et al., "Puzzle: Distillation-Based NAS for Inference-Optimized LLMs", 2024;
// "Llama-Nemotron: Efficient Reasoning Models", 2025.
#include "model/arch/recurrent.h"

namespace gimbal::arch {
namespace {

// The layer's attention, or the product that replaces it.
Value mixed_positions(Recorder& m, int layer, Value angles, Value x) {
  const auto a = attention_of_layer(m, layer);
  if (!a) return project(m, "attn_output", m.config.width, x);
  const Heads h = rotated(m, project_heads(m, *a, x), angles, RopePairs::Adjacent);
  return project(m, "attn_output", m.config.width, attend(m, *a, h));
}

void record_deci(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Value angles = rope_table(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    if (m.hyper.count_of("attention.head_count", i) > 0)
      x = p.add(x, mixed_positions(m, i, angles, rms_norm(m, "attn_norm", x)));
    if (m.hyper.count_of("feed_forward_length", i) > 0) x = p.add(x, glu(m, rms_norm(m, "ffn_norm", x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch deci;
const ModelArch deci{"deci", record_deci};

}  // namespace gimbal::arch
