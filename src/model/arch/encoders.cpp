// Encoders whose norms stand before the blocks, and what all encoders share.
// Warner et al., "Smarter, Better, Faster, Longer" (ModernBERT), 2024 (windows, GeGLU); Boizard et al.,
// "EuroBERT: Scaling Multilingual Encoders for European Languages", 2025; Le Breton et al., "NeoBERT: A
// Next-Generation BERT", 2025. Llama without a causal mask is NVIDIA's llama-embed.
#include "model/arch/blocks.h"

#include "base/format.h"
#include "base/text.h"

namespace gimbal::arch {

Attention all_seen(Recorder& m) {
  if (m.hyper.flag("attention.causal", false))
    m.hyper.fail(Code::Unsupported, m.config.arch +
                                        ".attention.causal is true; this version computes the architecture "
                                        "as an encoder, in which rows see later ones");
  Attention a = attention(m);
  a.seen = m.seen_both(-1, -1);
  return a;
}

Value ranked(Recorder& m, Value x) {
  if (!is_reranker(m)) return x;
  if (m.rows("token_types.weight") > 1)
    m.hyper.fail(Code::Unsupported,
                 "a reranker with token types: this version gives the first type to all tokens, which is "
                 "wrong for the second text");
  if (m.has("cls.weight")) x = m.p.map(OpKind::SoftCap, project(m, "cls", m.config.width, x), 1);  // tanh
  return ranking_head(m, 1, x);
}

namespace {

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

// Llama's block, seen from both sides. Experts where the file has them.
void record_prenormed(Recorder& m, RopePairs pairs, const char* last_norm) {
  ProgramBuilder& p = m.p;
  const Attention a = all_seen(m);
  const Value angles = rope_table(m);
  const bool mixed = m.hyper.count("expert_count", 0, 0) > 0;
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Heads h = rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)), angles, pairs);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    const Value y = rms_norm(m, "ffn_norm", x);
    x = p.add(x, mixed ? mixture(m, read_experts(m), y) : glu(m, y));
  }
  m.output(Output::Hidden, ranked(m, rms_norm(m, last_norm, wanted(m, x))));
}

void record_eurobert(Recorder& m) { record_prenormed(m, RopePairs::Halves, "output_norm"); }
void record_neo_bert(Recorder& m) { record_prenormed(m, RopePairs::Adjacent, "enc.output_norm"); }
void record_llama_embed(Recorder& m) {
  m.leave_out("output.weight");
  record_prenormed(m, RopePairs::Adjacent, "output_norm");
}

}  // namespace

extern const ModelArch modern_bert, eurobert, neo_bert, llama_embed;
const ModelArch modern_bert{"modern-bert", record_modern_bert, configure_attention, true};
const ModelArch eurobert{"eurobert", record_eurobert, configure_attention, true};
const ModelArch neo_bert{"neo-bert", record_neo_bert, configure_attention, true};
const ModelArch llama_embed{"llama-embed", record_llama_embed, configure_attention, true};

}  // namespace gimbal::arch
