// SmolLM3: a llama whose every fourth layer does not rotate its heads, which helps with long contexts.
// Bakouch et al., "SmolLM3: smol, multilingual, long-context reasoner", 2025; Yang et al., "RoPE to NoPE and
// Back Again", 2025.
#include "model/arch/blocks.h"

namespace gimbal::arch {

static constexpr int kUnrotated = 4;

extern const ModelArch smollm3;
const ModelArch smollm3{"smollm3", [](Recorder& m) {
                          ProgramBuilder& p = m.p;
                          const Attention a = attention(m);
                          const Value angles = rope_table(m);
                          Value x = token_embedding(m);
                          for (int i = 0; i < m.config.layers && !m.failed(); i++) {
                            m.layer(i);
                            Heads h = project_heads(m, a, rms_norm(m, "attn_norm", x));
                            if ((i + 1) % kUnrotated) h = rotated(m, h, angles, RopePairs::Adjacent);
                            x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
                            x = p.add(x, glu(m, rms_norm(m, "ffn_norm", x)));
                          }
                          logits(m, rms_norm(m, "output_norm", wanted(m, x)));
                        }};

}  // namespace gimbal::arch
