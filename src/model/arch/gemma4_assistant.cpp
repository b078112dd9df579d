// The drafter of Gemma 4: a few layers that attend to the model's keys and values. A row is a position of the
// model, with the next token. It writes the keys and values that the model has there: made again from the
// inputs of the model's last layers with keys of their own, by the model's weights, so the two share no
// memory. Then it joins the next token's embedding and the model's result, and its layers attend to these
// keys from the next position. All guesses of a draft are made from that one position: for further ones the
// drafter's own result takes the place of the model's (DraftHead::stays).
// Hugging Face, "Transformers", model_doc/gemma4_assistant, 2026.
#include <cmath>

#include "model/arch/gemma.h"
#include "model/draft_head.h"

namespace gimbal::arch {
namespace {

// The keys and values of one kind of layer, with a window or without, and the angles of its queries.
struct Side {
  Attention attention;  // but for the number of heads
  Remembered remembered;
  Value angles;  // of queries
};

// x: the input of the model's layer, [the model's width, R].
Side side_of(Recorder& m, bool windowed, Value x) {
  ProgramBuilder& p = m.p;
  const std::string target = windowed ? kTargetWindow : kTargetAll;
  const Gemma4Kind keys = gemma4_kind(m, windowed), queries = gemma4_kind(m, windowed, 1);
  const int rows = m.rows(target + "attn_k.weight");
  if (rows % keys.head_dim || rows == 0)
    m.hyper.fail(Code::Malformed, m.config.arch + ": the model's keys are no whole number of heads of " +
                                      std::to_string(keys.head_dim) + " values");
  const int kv_heads = std::max(1, rows / keys.head_dim);
  // The query is a position further than the last key.
  const Attention a{kv_heads, kv_heads, keys.head_dim, keys.head_dim, 1, windowed ? keys.window - 1 : 0};
  const Value n = rms_norm(m, target + "attn_norm", x);
  auto heads = [&](const char* name) {
    return p.split_heads(project(m, target + name, kv_heads * a.head_dim, n), a.head_dim);
  };
  const Value k = heads("attn_k"), v = m.has(target + "attn_v.weight") ? heads("attn_v") : k;
  const Value turned = p.rope(rms_norm(m, target + "attn_k_norm", k), keys.angles, RopePairs::Halves);
  const size_t pool = m.paged(a.window);
  const Remembered r{pool, m.keys(target + "keys", pool, a.head_dim, kv_heads),
                     m.values(target + "values", pool, a.value_dim, kv_heads)};
  write_heads(m, r, {turned, turned, p.norm(v, NormKind::Rms, m.config.norm_epsilon)});
  return {a, r, queries.angles};
}

Value attended(Recorder& m, const Side& side, Value x) {
  ProgramBuilder& p = m.p;
  Attention a = side.attention;
  a.heads = m.hyper.count_of("attention.head_count", m.current_layer(), {}, 1);
  if (a.heads % a.kv_heads)
    m.hyper.fail(Code::Malformed, m.config.arch + ": " + std::to_string(a.heads) +
                                      " heads are not a multiple of the model's " +
                                      std::to_string(a.kv_heads) + " heads of keys and values");
  bounded(m, "attention heads times key_length", int64_t(a.heads) * a.head_dim);
  if (m.failed()) return x;
  const Value q = p.split_heads(project(m, "attn_q", a.heads * a.head_dim, x), a.head_dim);
  const Value turned = p.rope(rms_norm(m, "attn_q_norm", q), side.angles, RopePairs::Halves);
  return project(m, "attn_output", m.config.width, attend_to(m, a, side.remembered, turned));
}

void record_gemma4_assistant(Recorder& m) {
  ProgramBuilder& p = m.p;
  const int d = m.config.width, width = m.hyper.count("embedding_length_out");
  const Value states = m.target_states(bounded(m, "three times embedding_length_out", 3 * int64_t(width)));
  const Side local = side_of(m, true, p.slice(states, 0, width)),
             global = side_of(m, false, p.slice(states, width, width));
  const std::string table = std::string(kTarget) + "token_embd.weight";
  const Value token =
      p.scale(p.embed(m.matrix(table, width, m.rows(table)), m.tokens()), std::sqrt(float(width)));
  const Value both = p.join_heads(
      p.concat(p.split_heads(token, width), p.split_heads(p.slice(states, 2 * width, width), width)));
  Value x = project(m, "nextn.pre_projection", d, both);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const bool windowed = m.hyper.flag_of("attention.sliding_window_pattern", i);
    const Value y = attended(m, windowed ? local : global, rms_norm(m, "attn_norm", x));
    x = p.add(x, rms_norm(m, "post_attention_norm", y));
    x = p.add(x, rms_norm(m, "post_ffw_norm", glu(m, rms_norm(m, "ffn_norm", x), OpKind::GeluGlu)));
    if (auto scale = m.optional_number("layer_output_scale.weight")) x = p.scale(x, *scale);
  }
  m.no_layer();
  // A shorter way to the likeliest tokens, which no logits need.
  for (const char* name : {"masked_embd_centroids.weight", "masked_embd_ordering"}) m.leave_out(name);
  const Value result = rms_norm(m, "output_norm", x);
  m.output(Output::States, project(m, "nextn.post_projection", width, result));
  m.output(Output::Logits, project(m, "token_embd", m.config.vocabulary, wanted(m, result)));
}

}  // namespace

extern const ModelArch gemma4_assistant;
const ModelArch gemma4_assistant{"gemma4-assistant", record_gemma4_assistant};

}  // namespace gimbal::arch
