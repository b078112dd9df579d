// BERT and its heirs: encoders, in which every row sees all others of its text, and norms follow the blocks.
// Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", 2019;
// Nussbaum et al., "Nomic Embed: Training a Reproducible Long Context Text Embedder", 2024 (rotation,
// SwiGLU); "Training Sparse Mixture Of Experts Text Embedding Models", 2025; Sturua et al.,
// "jina-embeddings-v3: Multilingual Embeddings With Task LoRA", 2024 (rotation).
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "model/arch/encoders.h"

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

void record_rotated(Recorder& m, Value (*feed_forward)(Recorder&, Value)) {
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
  record_rotated(m, [](Recorder& m, Value y) { return glu(m, y); });
}

void record_jina_bert_v3(Recorder& m) {
  record_rotated(m, [](Recorder& m, Value y) { return mlp(m, y, OpKind::Gelu); });
}

// Experts without a gate, in every n-th layer from the second one on.
void record_nomic_bert_moe(Recorder& m) {
  record_rotated(m, [](Recorder& m, Value y) {
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

extern const ModelArch bert, nomic_bert, nomic_bert_moe, jina_bert_v3;
const ModelArch bert{"bert", record_bert, configure_bert, true};
const ModelArch nomic_bert{"nomic-bert", record_nomic_bert, configure_bert, true};
const ModelArch nomic_bert_moe{"nomic-bert-moe", record_nomic_bert_moe, configure_bert, true};
const ModelArch jina_bert_v3{"jina-bert-v3", record_jina_bert_v3, configure_bert, true};

}  // namespace gimbal::arch
