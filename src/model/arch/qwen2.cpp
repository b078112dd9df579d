// Qwen2 and Qwen2.5: a llama with biases on q, k and v, whose heads are rotated by halves.
// Yang et al., "Qwen2 Technical Report", 2024.
#include "model/arch/blocks.h"

namespace gimbal::arch {

extern const ModelArch qwen2;
const ModelArch qwen2{"qwen2", [](Recorder& m) {
                        ProgramBuilder& p = m.p;
                        const Attention a = attention(m);
                        const Value angles = rope_table(m);
                        Value x = token_embedding(m);
                        for (int i = 0; i < m.config.layers && !m.failed(); i++) {
                          m.layer(i);
                          const Heads h =
                              rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x), Bias::Needed),
                                      angles, RopePairs::Halves);
                          x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
                          x = p.add(x, glu(m, rms_norm(m, "ffn_norm", x)));
                        }
                        logits(m, rms_norm(m, "output_norm", wanted(m, x)));
                      }};

}  // namespace gimbal::arch
