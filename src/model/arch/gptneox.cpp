// GPT-NeoX, Falcon and Phi-2: layer norms and GELU as in GPT-2, part or all of each head rotated by halves,
// attention and feed-forward in parallel. Pythia's models have them so, others of GPT-NeoX one after the
// other; Falcon has one norm for both, or one for each; Phi-2 is a Falcon with biases. Black et al.,
// "GPT-NeoX-20B", 2022; Almazrouei et al., "The Falcon Series of Open Language Models", 2023; Javaheripi et
// al., "Phi-2: The surprising power of small language models", 2023.
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

void record_gptneox(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  const bool parallel = m.hyper.flag("use_parallel_residual");
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Value y = layer_norm(m, "attn_norm", x, Bias::Needed);
    const Heads h = rotated(m, project_heads(m, a, y, Bias::Needed), angles, RopePairs::Halves);
    const Value sum = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h), Bias::Needed));
    const Value z = layer_norm(m, "ffn_norm", parallel ? x : sum, Bias::Needed);
    x = p.add(sum, mlp(m, z, OpKind::Gelu, Bias::Needed));
  }
  logits(m, layer_norm(m, "output_norm", wanted(m, x), Bias::Needed));
}

void record_like_falcon(Recorder& m, Bias bias) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Value y = layer_norm(m, "attn_norm", x, Bias::Needed);
    const bool two = m.has("attn_norm_2.weight");
    const Value z = two ? layer_norm(m, "attn_norm_2", x, Bias::Needed) : y;
    const Heads h = rotated(m, project_heads(m, a, z, bias), angles, RopePairs::Halves);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h), bias));
    x = p.add(x, mlp(m, y, OpKind::Gelu, bias));
  }
  logits(m, layer_norm(m, "output_norm", wanted(m, x), Bias::Needed));
}

void record_falcon(Recorder& m) { record_like_falcon(m, Bias::Optional); }
void record_phi2(Recorder& m) { record_like_falcon(m, Bias::Needed); }

}  // namespace

extern const ModelArch gptneox, falcon, phi2;
const ModelArch gptneox{"gptneox", record_gptneox};
const ModelArch falcon{"falcon", record_falcon};
const ModelArch phi2{"phi2", record_phi2};

}  // namespace gimbal::arch
