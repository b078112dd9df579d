// BitNet: weights of -1, 0 and 1, a norm before each product that closes a block.
// Ma et al., "The Era of 1-bit LLMs: All Large Language Models are in 1.58 Bits", 2024. `bitnet` is the gated
// SiLU of 1bitLLM's reproduction; `bitnet-b1.58` the squared ReLU of Ma et al., "BitNet b1.58 2B4T Technical
// Report", 2025.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

void record_bitnet(Recorder& m, OpKind gated) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Heads h = rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)), angles, RopePairs::Halves);
    x = p.add(x, project(m, "attn_output", m.config.width, rms_norm(m, "attn_sub_norm", attend(m, a, h))));

    const Value y = rms_norm(m, "ffn_norm", x);
    const int f = ff_width(m, i);
    const Value gate = project(m, "ffn_gate", f, y), up = project(m, "ffn_up", f, y);
    x = p.add(
        x, project(m, "ffn_down", m.config.width, rms_norm(m, "ffn_sub_norm", p.record(gated, {gate, up}))));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch bitnet, bitnet_b158;
const ModelArch bitnet{"bitnet", [](Recorder& m) { record_bitnet(m, OpKind::SwiGlu); }};
const ModelArch bitnet_b158{"bitnet-b1.58", [](Recorder& m) { record_bitnet(m, OpKind::SquaredReluGlu); }};

}  // namespace gimbal::arch
