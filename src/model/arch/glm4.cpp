// GLM-4: norms before and behind the blocks, part of each head rotated.
// Team GLM, "ChatGLM: A Family of Large Language Models from GLM-130B to GLM-4 All Tools", 2024.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

void record_glm4(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  // Files of the models with images have the sections of their rotation, and rotate by halves.
  const RopePairs pairs = m.hyper.has("rope.dimension_sections") ? RopePairs::Halves : RopePairs::Adjacent;
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Heads h = rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)), angles, pairs);
    const Value y = project(m, "attn_output", m.config.width, attend(m, a, h));
    x = p.add(x, rms_norm(m, "post_attention_norm", y));
    x = p.add(x, rms_norm(m, "post_ffw_norm", glu(m, rms_norm(m, "ffn_norm", x))));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch glm4;
const ModelArch glm4{"glm4", record_glm4, configure_without_nextn};

}  // namespace gimbal::arch
