// Arctic: experts beside a small dense feed-forward layer; the experts see the layer's input, and not its
// attention. Snowflake, "Arctic: Open, Efficient Foundation Language Models", 2024.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

void record_arctic(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  const Experts experts = read_experts(m);
  const int width = m.config.width;
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Heads h = rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)), angles, RopePairs::Adjacent);
    const Value y = p.add(x, project(m, "attn_output", width, attend(m, a, h)));
    const Value dense = p.add(y, glu(m, rms_norm(m, "ffn_norm", y), OpKind::SwiGlu, "", width));
    x = p.add(dense, mixture(m, experts, rms_norm(m, "ffn_norm_exps", x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch arctic;
const ModelArch arctic{"arctic", record_arctic};

}  // namespace gimbal::arch
