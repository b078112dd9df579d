// Llama and its many relatives: the plain decoder, SwiGLU, neighbouring values rotated together.
// Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023; Dubey et al., "The Llama 3
// Herd of Models", 2024. With experts it is Mixtral: Jiang et al., "Mixtral of Experts", 2024. The same under
// other names: Cai et al., "InternLM2 Technical Report", 2024; Baidu, "ERNIE 4.5 Technical Report", 2025.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

void record_llama(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  const bool mixed = m.hyper.count("expert_count", 0, 0) > 0;
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Heads h = rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)), angles, RopePairs::Adjacent);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    const Value y = rms_norm(m, "ffn_norm", x);
    x = p.add(x, mixed ? mixture(m, read_experts(m), y) : glu(m, y));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch llama, internlm2, ernie4_5;
const ModelArch llama{"llama", record_llama};
const ModelArch internlm2{"internlm2", record_llama};
const ModelArch ernie4_5{"ernie4_5", record_llama};

}  // namespace gimbal::arch
