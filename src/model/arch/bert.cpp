// BERT and its heirs: encoders, in which every row sees all others of its text.
// Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", 2019;
// Nussbaum et al., "Nomic Embed: Training a Reproducible Long Context Text Embedder", 2024 (rotation,
// SwiGLU); Warner et al., "Smarter, Better, Faster, Longer" (ModernBERT), 2024 (norms before blocks, windows,
// GeGLU).
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

Attention all_seen(Recorder& m) {
  if (m.hyper.flag("attention.causal", false))
    m.hyper.fail(Code::Unsupported, m.config.arch +
                                        ".attention.causal is true; this version computes the architecture "
                                        "as an encoder, in which rows see later ones");
  Attention a = attention(m);
  a.seen = m.seen_both(-1, -1);
  return a;
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

// The scores of a reranker: one number per row; the higher, the better the two parts of its text match.
Value ranked(Recorder& m, Value x) {
  if (!is_reranker(m)) return x;
  if (m.rows("token_types.weight") > 1)
    m.hyper.fail(Code::Unsupported,
                 "a reranker with token types: this version gives the first type to all tokens, which is "
                 "wrong for the second text");
  if (m.has("cls.weight")) x = m.p.map(OpKind::SoftCap, project(m, "cls", m.config.width, x), 1);  // tanh
  return ranking_head(m, 1, x);
}

// Norms follow the additions.
Value block(Recorder& m, Value x, const Attention& a, const Heads& h,
            Value (*feed_forward)(Recorder&, Value)) {
  x = m.p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
  x = layer_norm(m, "attn_output_norm", x);
  return layer_norm(m, "layer_output_norm", m.p.add(x, feed_forward(m, x)));
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

void record_nomic_bert(Recorder& m) {
  const Attention a = all_seen(m);
  const Value angles = rope_table(m);
  Value x = first_embedding(m, false);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Heads h = rotated(m, project_heads(m, a, x), angles, RopePairs::Halves);
    x = block(m, x, a, h, [](Recorder& m, Value y) { return glu(m, y); });
  }
  m.output(Output::Hidden, wanted(m, x));
}

// Of this many layers, the first attends to all positions.
bool sees_all(Recorder& m, int layer) {
  const char* key = "attention.sliding_window_pattern";
  return m.hyper.is_list(key) ? !m.hyper.flag_of(key, layer) : layer % m.hyper.count(key, 3) == 0;
}

OpKind modern_activation(Recorder& m) {
  const std::string name = m.hyper.text("hidden_activation", "gelu");
  if (name == "silu" || name == "swish" || name == "swiglu") return OpKind::SwiGlu;
  if (name != "gelu" && name != "geglu")
    m.hyper.fail(Code::Unsupported, format("{}.hidden_activation is {}; this version computes gelu and silu",
                                           m.config.arch, quoted(name)));
  return OpKind::GeluGlu;
}

void record_modern_bert(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention all = all_seen(m);
  const Value angles = rope_table(m);
  Attention local = all;
  Value local_angles = angles;
  if (const int window = m.hyper.count("attention.sliding_window", 0, 0)) {
    local.seen = m.seen_both(window / 2, window / 2);
    local_angles = window_rope_table(m);
  }
  const OpKind activation = modern_activation(m);
  Value x = layer_norm(m, "token_embd_norm", token_embedding(m));
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const bool whole = sees_all(m, i);
    const Attention& a = whole ? all : local;
    // The input of the first layer is normed already.
    const Value y = i == 0 && !m.has("attn_norm.weight") ? x : layer_norm(m, "attn_norm", x);
    const Heads h = rotated(m, project_heads(m, a, y), whole ? angles : local_angles, RopePairs::Halves);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    x = p.add(x, glu(m, layer_norm(m, "ffn_norm", x), activation));
  }
  m.output(Output::Hidden, layer_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch bert, nomic_bert, modern_bert;
const ModelArch bert{"bert", record_bert, configure_bert, true};
const ModelArch nomic_bert{"nomic-bert", record_nomic_bert, configure_bert, true};
const ModelArch modern_bert{"modern-bert", record_modern_bert, configure_attention, true};

}  // namespace gimbal::arch
