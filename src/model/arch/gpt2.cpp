// GPT-2 and those built like it: layer norms before the blocks, one feed-forward layer, a bias in every
// product. They differ in the encoding of positions. GPT-2 learns a vector for each, and so does StarCoder;
// Radford et al., "Language Models are Unsupervised Multitask Learners", 2019; Li et al., "StarCoder: may the
// source be with you!", 2023. StarCoder2, CodeShell, Nemotron and Jais 2 rotate heads by halves; Lozhkov et
// al., "StarCoder 2 and The Stack v2", 2024; Xie et al., "CodeShell Technical Report", 2024; Parmar et al.,
// "Nemotron-4 15B Technical Report", 2024; MBZUAI, "Jais 2", 2025. BLOOM, MPT and Jais lower the scores of
// distant positions (ALiBi), BLOOM norms its embeddings, MPT needs no biases and clamps q, k and v; Le Scao
// et al., "BLOOM", 2022; MosaicML, "Introducing MPT-7B", 2023; Sengupta et al., "Jais and Jais-chat", 2023.
// Most activate by GELU, Nemotron and Jais 2 by the square of ReLU, Jais by SwiGLU.
#include <functional>

#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

constexpr float kBloomBias = 8;  // the largest that ALiBi subtracts for one position

using Change = std::function<Heads(const Heads&)>;

struct Kind {
  Bias bias = Bias::Needed;
  OpKind activation = OpKind::Gelu;
};

// `change`: of q, k and v, before they meet.
void record_like_gpt2(Recorder& m, Value x, const Attention& a, Kind kind, const Change& change) {
  ProgramBuilder& p = m.p;
  const Bias bias = kind.bias;
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Heads h = change(project_heads(m, a, layer_norm(m, "attn_norm", x, bias), bias));
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h), bias));
    const Value y = layer_norm(m, "ffn_norm", x, bias);
    x = p.add(x, kind.activation == OpKind::SwiGlu ? glu(m, y) : mlp(m, y, kind.activation, bias));
  }
  logits(m, layer_norm(m, "output_norm", wanted(m, x), bias));
}

Heads as_they_are(const Heads& h) { return h; }

void record_gpt2(Recorder& m) {
  const Value x = m.p.add(token_embedding(m), position_embedding(m));
  record_like_gpt2(m, x, attention(m), {}, as_they_are);
}

void record_rotated_decoder(Recorder& m, Kind kind) {
  const Value angles = rope_table(m);
  record_like_gpt2(m, token_embedding(m), attention(m), kind,
                   [&](const Heads& h) { return rotated(m, h, angles, RopePairs::Halves); });
}

void record_starcoder2(Recorder& m) { record_rotated_decoder(m, {}); }
// The 4B and its children have biases in norms only.
void record_nemotron(Recorder& m) { record_rotated_decoder(m, {Bias::Optional, OpKind::SquaredRelu}); }
void record_jais2(Recorder& m) { record_rotated_decoder(m, {.activation = OpKind::SquaredRelu}); }

void record_bloom(Recorder& m) {
  Attention a = attention(m);
  a.alibi = kBloomBias;
  const Value x = layer_norm(m, "token_embd_norm", token_embedding(m), Bias::Needed);
  record_like_gpt2(m, x, a, {}, as_they_are);
}

// Scores are divided by head_dim itself, not by its root.
void record_jais(Recorder& m) {
  Attention a = attention(m);
  a.scale = 1 / float(a.head_dim);
  a.alibi = float(m.hyper.number("attention.max_alibi_bias", 0, 0));
  record_like_gpt2(m, token_embedding(m), a, {.activation = OpKind::SwiGlu}, as_they_are);
}

void record_mpt(Recorder& m) {
  ProgramBuilder& p = m.p;
  Attention a = attention(m);
  a.alibi = float(m.hyper.number("attention.max_alibi_bias", 0, 0));
  Value x = token_embedding(m);
  if (m.has("position_embd.weight")) x = p.add(x, position_embedding(m));
  // Of all heads together, if a model has such norms.
  auto normed = [&](const std::string& name, Value v) {
    if (!m.has(name + ".weight")) return v;
    return p.split_heads(layer_norm(m, name, p.join_heads(v)), a.head_dim);
  };
  record_like_gpt2(m, x, a, {Bias::Optional}, [&](const Heads& h) {
    const Heads c = clamped(m, h);
    return Heads{normed("attn_q_norm", c.q), normed("attn_k_norm", c.k), c.v};
  });
}

}  // namespace

extern const ModelArch gpt2, starcoder, starcoder2, codeshell, nemotron, jais2, bloom, jais, mpt;
const ModelArch gpt2{"gpt2", record_gpt2};
const ModelArch starcoder{"starcoder", record_gpt2};
const ModelArch starcoder2{"starcoder2", record_starcoder2};
const ModelArch codeshell{"codeshell", record_starcoder2};
const ModelArch nemotron{"nemotron", record_nemotron};
const ModelArch jais2{"jais2", record_jais2};
const ModelArch bloom{"bloom", record_bloom};
const ModelArch jais{"jais", record_jais};
const ModelArch mpt{"mpt", record_mpt};

}  // namespace gimbal::arch
