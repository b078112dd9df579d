// DFlash: a draft head that guesses a block of tokens in one step. Rows of the text have the states of some
// of the target's layers and no token: joined into one state, they give each layer keys and values. Rows with
// results are the block: the text's last token, and masks in place of the next ones. Each of its layers
// attends to the text and to the whole block. Chen et al., "DFlash: Block Diffusion for Flash Speculative
// Decoding", 2026. DSpark adds a Markov head (model/markov_head.h).
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

constexpr StepRows kBlock = StepRows::Wanted;

struct Head {
  Attention attention;
  bool both_sides;  // rows of a block attend to later ones
  OpKind activation;
  Value text_angles, block_angles;
};

Head read_head(Recorder& m) {
  Hyperparameters& h = m.hyper;
  if (h.has("hyper_connection.count"))
    h.fail(Code::Unsupported,
           "dflash: hyper-connections (heads of DeepSeek V4) are not computed by this version");
  Head head{attention(m), !h.flag("attention.causal", false), OpKind::SwiGlu, {}, {}};
  if (const double scale = h.number("attention.scale", 0, 0); scale > 0) head.attention.scale = float(scale);
  const std::string act = h.text("hidden_activation", "silu");
  if (act == "gelu" || act == "gelu_pytorch_tanh") head.activation = OpKind::GeluGlu;
  else if (act != "silu")
    h.fail(Code::Unsupported,
           format("dflash.hidden_activation is {}; this version computes silu and gelu", quoted(act)));
  const RopeSettings settings{.rotated = m.config.rotated, .base = m.config.rope_base};
  head.text_angles = m.rope(settings), head.block_angles = m.rope(settings, "rope", kBlock);
  return head;
}

// The first and the last position that each row of the block attends to: i32[2, O].
Value seen_in_block(Recorder& m, int window, bool both_sides) {
  return m.row_input(
      format("seen {} in block", window), DType::I32, 2,
      [=](const StepRow& r, std::byte* to) {
        const int32_t range[] = {window ? std::max(0, r.position - window + 1) : 0,
                                 both_sides ? r.last : r.position};
        std::memcpy(to, range, sizeof range);
      },
      kBlock);
}

// Of the rows of x. Without attn_v values are the keys, normed without weights.
Heads keys_and_values(Recorder& m, const Attention& a, Value x, Value angles) {
  ProgramBuilder& p = m.p;
  const Value k = p.split_heads(project(m, "attn_k", a.kv_heads * a.head_dim, x), a.head_dim);
  const Value v = m.has("attn_v.weight")
                      ? p.split_heads(project(m, "attn_v", a.kv_heads * a.value_dim, x), a.value_dim)
                      : p.norm(k, NormKind::Rms, m.config.norm_epsilon);
  const Value turned = p.rope(rms_norm(m, "attn_k_norm", k), angles, RopePairs::Halves);
  return {turned, turned, v};
}

Value attended(Recorder& m, const Head& head, int layer, Value text, Value x) {
  ProgramBuilder& p = m.p;
  Attention a = head.attention;
  const char* key = "attention.sliding_window";
  if (m.hyper.has(key) && m.hyper.flag_of("attention.sliding_window_pattern", layer))
    a.window = window_size(m);
  a.seen = seen_in_block(m, a.window, head.both_sides);
  a.sinks = m.optional_vector("attn_sinks.weight", a.heads);
  const Remembered r = remember(m, a, keys_and_values(m, a, text, head.text_angles));
  Heads h = keys_and_values(m, a, x, head.block_angles);
  write_heads(m, r, h, kBlock);
  const Value q = p.split_heads(project(m, "attn_q", a.heads * a.head_dim, x), a.head_dim);
  h.q = p.rope(rms_norm(m, "attn_q_norm", q), head.block_angles, RopePairs::Halves);
  return project(m, "attn_output", m.config.width, attend_to(m, a, r, h.q, kBlock));
}

void record_dflash(Recorder& m) {
  ProgramBuilder& p = m.p;
  const int d = m.config.width;
  const Head head = read_head(m);
  const MetadataArray* layers = m.metadata().array("dflash.target_layers");
  const Value states = m.target_states(
      bounded(m, "embedding_length and target_layers", int64_t(layers ? layers->count : 1) * d));
  const Value text = rms_norm(m, "enc.output_norm", project(m, "fc", d, states));
  Value x = p.embed(m.matrix("token_embd.weight", d, m.config.vocabulary), m.tokens(kBlock));
  if (const double scale = m.hyper.number("embedding_scale", 0); scale != 0) x = p.scale(x, float(scale));
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    auto normed_if_there = [&](const char* name, Value y) {
      return m.has(std::string(name) + ".weight") ? rms_norm(m, name, y) : y;
    };
    const Value y = attended(m, head, i, text, rms_norm(m, "attn_norm", x));
    x = p.add(x, normed_if_there("post_attention_norm", y));
    const Value z = glu(m, rms_norm(m, "ffn_norm", x), head.activation);
    x = p.add(x, normed_if_there("post_ffw_norm", z));
    if (auto scale = m.optional_number("layer_output_scale.weight")) x = p.scale(x, *scale);
  }
  m.no_layer();
  // Of the drafter. It chooses the number of guesses by measured times, not by the head's confidence.
  for (const char* name : {"d2t", "markov_w1.weight", "markov_w2.weight", "markov_w2.scale",
                           "conf_proj.weight", "conf_proj.bias"})
    m.leave_out(name);
  const std::string table = m.has("output.weight") ? "output" : "token_embd";
  // Scales and caps of logits change no guess.
  m.output(Output::Logits,
           project(m, table, std::max(1, m.rows(table + ".weight")), rms_norm(m, "output_norm", x)));
}

}  // namespace

extern const ModelArch dflash;
const ModelArch dflash{"dflash", record_dflash};

}  // namespace gimbal::arch
