// Arcee (AFM): a llama whose feed-forward layer squares ReLU instead of having a gate. Arcee AI, "AFM-4.5B",
// 2025; So et al., "Primer: Searching for Efficient Transformers for Language Modeling", 2021.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

void record_arcee(Recorder& m) {
  ProgramBuilder& p = m.p;
  Attention a = attention(m);
  a.scale = float(m.hyper.positive("attention.scale", a.scale));
  const Value angles = rope_table(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Heads h = rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)), angles, RopePairs::Adjacent);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    x = p.add(x, mlp(m, rms_norm(m, "ffn_norm", x), OpKind::SquaredRelu));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch arcee;
const ModelArch arcee{"arcee", record_arcee};

}  // namespace gimbal::arch
