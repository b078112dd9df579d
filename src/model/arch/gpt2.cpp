// GPT-2 and those built like it: layer norms before the blocks, one GELU feed-forward layer, a bias in
// every product. They differ in the encoding of positions. GPT-2 learns a vector for each; Radford et al.,
// "Language Models are Unsupervised Multitask Learners", 2019. StarCoder2 rotates heads by halves; Lozhkov
// et al., "StarCoder 2 and The Stack v2", 2024. BLOOM and MPT lower the scores of distant positions
// (ALiBi), BLOOM norms its embeddings, MPT needs no biases and clamps q, k and v; Le Scao et al., "BLOOM",
// 2022; MosaicML, "Introducing MPT-7B", 2023.
#include <functional>

#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

constexpr float kBloomBias = 8;  // the largest that ALiBi subtracts for one position

using Change = std::function<Heads(const Heads&)>;

// `change`: of q, k and v, before they meet.
void record_like_gpt2(Recorder& m, Value x, const Attention& a, Bias bias, const Change& change) {
  ProgramBuilder& p = m.p;
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Heads h = change(project_heads(m, a, layer_norm(m, "attn_norm", x, bias), bias));
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h), bias));
    x = p.add(x, mlp(m, layer_norm(m, "ffn_norm", x, bias), OpKind::Gelu, bias));
  }
  logits(m, layer_norm(m, "output_norm", wanted(m, x), bias));
}

Heads as_they_are(const Heads& h) { return h; }

void record_gpt2(Recorder& m) {
  const Value x = m.p.add(token_embedding(m), position_embedding(m));
  record_like_gpt2(m, x, attention(m), Bias::Needed, as_they_are);
}

void record_starcoder2(Recorder& m) {
  const Value angles = rope_table(m);
  record_like_gpt2(m, token_embedding(m), attention(m), Bias::Needed,
                   [&](const Heads& h) { return rotated(m, h, angles, RopePairs::Halves); });
}

void record_bloom(Recorder& m) {
  Attention a = attention(m);
  a.alibi = kBloomBias;
  const Value x = layer_norm(m, "token_embd_norm", token_embedding(m), Bias::Needed);
  record_like_gpt2(m, x, a, Bias::Needed, as_they_are);
}

void record_mpt(Recorder& m) {
  ProgramBuilder& p = m.p;
  Attention a = attention(m);
  a.alibi = float(m.hyper.number("attention.max_alibi_bias", 0, 0));
  const auto limit = float(m.hyper.number("attention.clamp_kqv", 0, 0));
  Value x = token_embedding(m);
  if (m.has("position_embd.weight")) x = p.add(x, position_embedding(m));
  auto clamped = [&](Value v) { return limit > 0 ? p.map(OpKind::Clamp, v, limit) : v; };
  // Of all heads together, if a model has such norms.
  auto normed = [&](const std::string& name, Value v) {
    if (!m.has(name + ".weight")) return v;
    return p.split_heads(layer_norm(m, name, p.join_heads(v)), a.head_dim);
  };
  record_like_gpt2(m, x, a, Bias::Optional, [&](const Heads& h) {
    return Heads{normed("attn_q_norm", clamped(h.q)), normed("attn_k_norm", clamped(h.k)), clamped(h.v)};
  });
}

}  // namespace

extern const ModelArch gpt2, starcoder2, bloom, mpt;
const ModelArch gpt2{"gpt2", record_gpt2};
const ModelArch starcoder2{"starcoder2", record_starcoder2};
const ModelArch bloom{"bloom", record_bloom};
const ModelArch mpt{"mpt", record_mpt};

}  // namespace gimbal::arch
