// Granite and MiniCPM: llamas with scaled sums, as in models that take their learning rates from
// smaller ones. Embeddings and the output of every block are multiplied, logits are divided.
// Granite's mixture of experts may also have a shared expert for all rows. granite_swa has windows in the
// layers that files list, and a sink for each head. Hu et al.,
// "MiniCPM: Unveiling the Potential of Small Language Models", 2024; IBM, "Granite 3.0 Language
// Models", 2024.
#include <cmath>

#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

struct Scales {
  double block, logits;  // logits are divided by theirs
};

Value granite_feed_forward(Recorder& m, const std::optional<Experts>& experts, Value x) {
  if (!experts) return glu(m, x);
  const Value y = mixture(m, *experts, x);
  const int shared = m.hyper.count("expert_shared_feed_forward_length", 0, 0);
  return shared ? m.p.add(y, glu(m, x, OpKind::SwiGlu, "_shexp", shared)) : y;
}

// From the embeddings x. Without angles heads are not rotated; without experts feed-forward layers are plain.
void record_like_granite(Recorder& m, const Attention& a, std::optional<Value> angles, const Scales& scales,
                         Value x, const std::optional<Experts>& experts = {}) {
  ProgramBuilder& p = m.p;
  auto add_block = [&](Value y) { x = p.add(x, p.scale(y, float(scales.block))); };
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    Heads h = project_heads(m, a, rms_norm(m, "attn_norm", x));
    if (angles) h = rotated(m, h, *angles, RopePairs::Adjacent);
    add_block(project(m, "attn_output", m.config.width, attend(m, a, h)));
    add_block(granite_feed_forward(m, experts, rms_norm(m, "ffn_norm", x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)), float(1 / scales.logits));
}

void record_granite(Recorder& m, const std::optional<Experts>& experts) {
  Hyperparameters& h = m.hyper;
  Attention a = attention(m);
  a.scale = float(h.positive("attention.scale", a.scale));
  std::optional<Value> angles;
  if (h.flag("rope.scaling.finetuned", true)) angles = rope_table(m);  // false: no rotation
  const double scale = h.positive("embedding_scale", 1);
  record_like_granite(m, a, angles, {h.positive("residual_scale", 1), h.positive("logit_scale")},
                      token_embedding(m, float(scale)), experts);
}

void record_granite_swa(Recorder& m) {
  ProgramBuilder& p = m.p;
  Hyperparameters& h = m.hyper;
  const auto block = float(h.positive("residual_scale", 1));
  const Attention all = attention(m);
  const int window = window_size(m);
  const Value angles = rope_table(m);
  std::optional<Experts> experts;
  if (h.count("expert_count", 0, 0) > 0) experts = read_experts(m);
  Value x = token_embedding(m, float(h.positive("embedding_scale", 1)));
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    Attention a = all;
    a.scale = float(h.positive("attention.scale", a.scale));
    if (h.flag_of("attention.sliding_window_pattern", i)) a.window = window;
    a.seen = m.seen(a.window - 1);
    a.sinks = m.vector("attn_sinks.weight", a.heads);
    Heads heads = project_heads(m, a, rms_norm(m, "attn_norm", x));
    if (h.flag_of("attention.rope_pattern", i, true)) heads = rotated(m, heads, angles, RopePairs::Adjacent);
    x = p.add(x, p.scale(project(m, "attn_output", m.config.width, attend(m, a, heads)), block));
    x = p.add(x, p.scale(granite_feed_forward(m, experts, rms_norm(m, "ffn_norm", x)), block));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)), float(1 / h.positive("logit_scale")));
}

// Older files lack these numbers: the defaults are those of the models of that time. (llama.cpp divides
// logits by 256 / width, where the models' authors multiplied by it; the order of the logits stays the same.
// It multiplies pictures' rows as tokens' embeddings, where MiniCPM-V does not.)
void record_minicpm(Recorder& m) {
  Hyperparameters& h = m.hyper;
  const double layers = m.config.layers + m.config.left_out;
  const auto scale = float(h.positive("embedding_scale", 12));
  const Value angles = rope_table(m);
  const Value x = m.embedded(m.matrix("token_embd.weight", m.config.width, m.config.vocabulary), scale);
  record_like_granite(m, attention(m), angles,
                      {h.positive("residual_scale", 1.4 / std::sqrt(layers)),
                       h.positive("logit_scale", m.config.width / 256.0)},
                      x);
}

}  // namespace

extern const ModelArch granite, granitemoe, granite_swa, minicpm;
const ModelArch granite{"granite", [](Recorder& m) { record_granite(m, {}); }};
const ModelArch granitemoe{"granitemoe", [](Recorder& m) { record_granite(m, read_experts(m)); }};
const ModelArch granite_swa{"granite_swa", record_granite_swa};
const ModelArch minicpm{"minicpm", record_minicpm};

}  // namespace gimbal::arch
