// BERT and its heirs: encoders, in which every row sees all others of its text, and norms follow the blocks.
// Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", 2019;
// Nussbaum et al., "Nomic Embed: Training a Reproducible Long Context Text Embedder", 2024 (rotation,
// SwiGLU); "Training Sparse Mixture Of Experts Text Embedding Models", 2025; Sturua et al.,
// "jina-embeddings-v3: Multilingual Embeddings With Task LoRA", 2024 (rotation); Günther et al., "Jina
// Embeddings 2: 8192-Token General-Purpose Text Embeddings for Long Documents", 2023 (ALiBi to both sides).
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

// Token types are in a tensor of their own, and a key of the tokenizer counts them. Distilled models have
// none and count one.
Status configure_bert(const Metadata& metadata, const TensorTable& tensors, Config& c) {
  const char* key = "tokenizer.ggml.token_type_count";
  const auto types = metadata.unsigned_integer(key).value_or(1);
  const StoredTensor* t = tensors.find("token_types.weight");
  if (types != 1 && (!t || uint64_t(t->dim[1]) != types))
    return Error{Code::Malformed,
                 format("{}: '{}' is {}, and tensor 'token_types.weight' has {} rows", metadata.source(), key,
                        types, t ? t->dim[1] : 0),
                 ""};
  return configure_attention(metadata, tensors, c);
}

// Tokens, of the first of two parts that a text may have, and their positions.
Value first_embedding(Recorder& m, bool with_positions) {
  ProgramBuilder& p = m.p;
  Value x = token_embedding(m);
  if (const int types = m.rows("token_types.weight")) {
    const Value first = m.row_input("token type", DType::I32, 0, [](const StepRow&, std::byte* to) {
      std::memset(to, 0, sizeof(int32_t));
    });
    x = p.add(x, p.embed(m.matrix("token_types.weight", m.config.width, types), first));
  }
  return layer_norm(m, "token_embd_norm", with_positions ? p.add(x, position_embedding(m)) : x);
}

// Norms follow the additions.
Value block(Recorder& m, Value x, const Attention& a, const Heads& h,
            Value (*feed_forward)(Recorder&, Value)) {
  const Value y = m.p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
  Value z = layer_norm(m, "attn_output_norm", y);
  if (m.has("attn_norm_2.weight")) z = layer_norm(m, "attn_norm_2", m.p.add(z, x));
  return layer_norm(m, "layer_output_norm", m.p.add(z, feed_forward(m, z)));
}

void record_bert(Recorder& m) {
  const Attention a = all_seen(m);
  Value x = first_embedding(m, true);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    x = block(m, x, a, project_heads(m, a, x), [](Recorder& m, Value y) { return mlp(m, y, OpKind::Gelu); });
  }
  m.output(Output::Hidden, ranked(m, wanted(m, x)));
}

void record_rotated_encoder(Recorder& m, Value (*feed_forward)(Recorder&, Value)) {
  const Attention a = all_seen(m);
  const Value angles = rope_table(m);
  Value x = first_embedding(m, false);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Heads h = rotated(m, project_heads(m, a, x), angles, RopePairs::Halves);
    x = block(m, x, a, h, feed_forward);
  }
  m.output(Output::Hidden, wanted(m, x));
}

void record_nomic_bert(Recorder& m) {
  record_rotated_encoder(m, [](Recorder& m, Value y) { return glu(m, y); });
}

void record_jina_bert_v3(Recorder& m) {
  record_rotated_encoder(m, [](Recorder& m, Value y) { return mlp(m, y, OpKind::Gelu); });
}

// Files have a gate of its own, one before the rows of ffn_up, or none.
Value jina_feed_forward(Recorder& m, Value x) {
  const bool gated = m.has("ffn_gate.weight") || m.rows("ffn_up.weight") != ff_width(m, m.current_layer());
  return gated ? glu(m, x, OpKind::GeluGlu) : mlp(m, x, OpKind::Gelu);
}

void record_jina_bert_v2(Recorder& m) {
  Attention a = all_seen(m);
  a.alibi = 8;
  Value x = first_embedding(m, false);
  // Of all heads together.
  const auto normed = [&](const char* name, Value heads) {
    if (!m.has(std::string(name) + ".weight")) return heads;
    return m.p.split_heads(layer_norm(m, name, m.p.join_heads(heads)), a.head_dim);
  };
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    Heads h = project_heads(m, a, x);
    h.q = normed("attn_q_norm", h.q), h.k = normed("attn_k_norm", h.k);
    x = block(m, x, a, h, jina_feed_forward);
  }
  m.output(Output::Hidden, ranked(m, wanted(m, x)));
}

// Experts without a gate, in every n-th layer from the second one on.
void record_nomic_bert_moe(Recorder& m) {
  record_rotated_encoder(m, [](Recorder& m, Value y) {
    const int period = m.hyper.count("moe_every_n_layers", 0, 0);
    if (period == 0 || m.current_layer() % period != 1) return mlp(m, y, OpKind::Gelu);
    const Experts e = read_experts(m, {.normalised = false});
    if (e.routing.gating != Gating::Softmax)
      m.hyper.fail(Code::Unsupported, m.config.arch +
                                          ".expert_gating_func is not softmax, which is all that "
                                          "this version computes for the architecture");
    const Value routes = m.p.route(project(m, "ffn_gate_inp", e.count, y), e.routing);
    const Value up = m.expert_product("ffn_up_exps", e.width, e.count, y, routes);
    const Value down =
        m.expert_product("ffn_down_exps", width_of(m, y), e.count, m.p.map(OpKind::Gelu, up), routes);
    return m.p.combine(down, routes);
  });
}

}  // namespace

extern const ModelArch bert, nomic_bert, nomic_bert_moe, jina_bert_v2, jina_bert_v3;
const ModelArch bert{"bert", record_bert, configure_bert, true};
const ModelArch nomic_bert{"nomic-bert", record_nomic_bert, configure_bert, true};
const ModelArch nomic_bert_moe{"nomic-bert-moe", record_nomic_bert_moe, configure_bert, true};
const ModelArch jina_bert_v2{"jina-bert-v2", record_jina_bert_v2, configure_bert, true};
const ModelArch jina_bert_v3{"jina-bert-v3", record_jina_bert_v3, configure_bert, true};

}  // namespace gimbal::arch
