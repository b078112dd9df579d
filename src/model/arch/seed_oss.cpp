// Seed-OSS: a Qwen2 whose second norm has another name in files. ByteDance Seed, "Seed-OSS Open-Source
// Models", 2025.
#include "model/arch/blocks.h"

namespace gimbal::arch {

extern const ModelArch seed_oss;
const ModelArch seed_oss{"seed_oss", [](Recorder& m) {
                           ProgramBuilder& p = m.p;
                           const Attention a = attention(m);
                           const Value angles = rope_table(m);
                           Value x = token_embedding(m);
                           for (int i = 0; i < m.config.layers && !m.failed(); i++) {
                             m.layer(i);
                             const Heads h = rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)),
                                                     angles, RopePairs::Halves);
                             x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
                             x = p.add(x, glu(m, rms_norm(m, "post_attention_norm", x)));
                           }
                           logits(m, rms_norm(m, "output_norm", wanted(m, x)));
                         }};

}  // namespace gimbal::arch
