// Phi-3 and Phi-4: a llama whose projections come fused, q with k and v, and gate with up; heads rotated by
// halves. Long-context ones divide the frequencies by factors, of which there are two lists (longrope). A
// window in the metadata is not used: which layers it is for is not in files, and the models work without.
// Abdin et al., "Phi-3 Technical Report", 2024; Ding et al., "LongRoPE", 2024.
#include "model/arch/blocks.h"

namespace gimbal::arch {

extern const ModelArch phi3;
const ModelArch phi3{"phi3", [](Recorder& m) {
                       ProgramBuilder& p = m.p;
                       const Attention a = attention(m);
                       const Value angles = rope_table(m);
                       Value x = token_embedding(m);
                       for (int i = 0; i < m.config.layers && !m.failed(); i++) {
                         m.layer(i);
                         const Heads h = rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)), angles,
                                                 RopePairs::Halves);
                         x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
                         x = p.add(x, glu(m, rms_norm(m, "ffn_norm", x)));
                       }
                       logits(m, rms_norm(m, "output_norm", wanted(m, x)));
                     }};

}  // namespace gimbal::arch
