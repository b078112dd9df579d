// Gemma 4: layers with a window have heads of their own size; the last layers attend to keys and
// values of earlier ones; every layer may take its own vector for each token; and experts may
// run beside the feed-forward layer. In layers with a window, rows of a picture see each other. Gemma Team,
// "Gemma 4", 2026; per-layer inputs as in Gemma 3n.
#include <cmath>

#include "model/arch/gemma.h"

namespace gimbal::arch {

Gemma4Kind gemma4_kind(Recorder& m, bool windowed, int ahead) {
  Hyperparameters& h = m.hyper;
  const char* behind = ahead ? " of the next position" : "";
  if (!windowed)
    return {m.config.head_dim, 0,
            m.rope({.rotated = m.config.rotated, .base = m.config.rope_base, .ahead = ahead},
                   std::string("rope") + behind)};
  Gemma4Kind k{h.count("attention.key_length_swa"), window_size(m), {}};
  const int rotated = h.count("rope.dimension_count_swa", k.head_dim);
  if (rotated > k.head_dim || h.count("attention.value_length_swa", k.head_dim) != k.head_dim ||
      m.config.value_dim != m.config.head_dim)
    h.fail(Code::Malformed,
           "gemma4: keys and values must have the same length, at least that of their rotated part");
  k.angles = m.rope({.rotated = rotated,
                     .base = h.number("rope.freq_base_swa", 10000, 0),
                     .scaled = false,
                     .divided = false,
                     .ahead = ahead},
                    std::string("rope of windows") + behind);
  if (m.options.embeddings) k.seen = m.seen_in_pictures(k.window - 1);
  return k;
}

namespace {

Attention attention_of(Recorder& m, const Gemma4Kind& kind, int layer) {
  const int heads = m.hyper.count_of("attention.head_count", layer, {}, 1),
            kv_heads = m.hyper.count_of("attention.head_count_kv", layer, heads, 1);
  if (heads % kv_heads)
    m.hyper.fail(Code::Malformed, "gemma4, layer " + std::to_string(layer) + ": " + std::to_string(heads) +
                                      " heads are not a multiple of " + std::to_string(kv_heads) +
                                      " heads of keys and values");
  bounded(m, "attention heads times key_length", int64_t(heads) * kind.head_dim);
  return {heads, kv_heads, kind.head_dim, kind.head_dim, 1, kind.window, 0, 0, kind.seen};
}

// The feed-forward layer, and beside it the experts, if there are any.
Value gemma4_feed_forward(Recorder& m, const std::optional<Experts>& experts, Value x) {
  ProgramBuilder& p = m.p;
  const Value dense = glu(m, rms_norm(m, "ffn_norm", x), OpKind::GeluGlu);
  if (!experts || !m.has("ffn_gate_inp.weight")) return dense;
  const int d = m.config.width;
  const Value scales = m.vector("ffn_gate_inp.scale", d);
  const Value seen =
      p.scale(p.norm(x, NormKind::Rms, m.config.norm_epsilon, scales), 1 / std::sqrt(float(d)));
  const Value scores = m.product("ffn_gate_inp", 0, experts->count, experts->count, seen);
  const Value mixed = mixture(m, *experts, rms_norm(m, "pre_ffw_norm_2", x), scores);
  return p.add(rms_norm(m, "post_ffw_norm_1", dense), rms_norm(m, "post_ffw_norm_2", mixed));
}

std::optional<Experts> experts_of(Recorder& m) {
  if (m.hyper.count("expert_count", 0, 0) == 0) return {};
  Experts e = read_experts(m);
  e.activation = OpKind::GeluGlu;
  return e;
}

void record_gemma4(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Gemma4Kind local = gemma4_kind(m, true), global = gemma4_kind(m, false);
  const std::optional<Experts> experts = experts_of(m);
  const int width = m.hyper.count("embedding_length_per_layer_input", 0, 0),
            shared = m.hyper.count("attention.shared_kv_layers", 0, 0);
  Value x = scaled_embedding(m);
  std::optional<Value> inputs;
  if (width) inputs = layer_inputs(m, width, x);
  std::optional<Remembered> last_local, last_global;
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    const bool windowed = m.hyper.flag_of("attention.sliding_window_pattern", i);
    auto& last = windowed ? last_local : last_global;
    const bool own = i < m.config.layers - shared;
    const Gemma4Kind& kind = windowed ? local : global;
    const Value y =
        sharing_attention(m, attention_of(m, kind, i), kind.angles, last, own, rms_norm(m, "attn_norm", x));
    x = p.add(x, rms_norm(m, "post_attention_norm", y));
    x = p.add(x, rms_norm(m, "post_ffw_norm", gemma4_feed_forward(m, experts, x)));
    if (inputs) x = p.add(x, of_layer_input(m, p.slice(*inputs, i * width, width), x));
    if (auto scale = m.optional_number("layer_output_scale.weight")) x = p.scale(x, *scale);
  }
  const float cap = float(m.hyper.number("final_logit_softcapping", 30, 0));
  if (!m.asks_for_result()) return logits(m, rms_norm(m, "output_norm", wanted(m, x)), 1, cap);
  m.no_layer();
  const Value result = rms_norm(m, "output_norm", x);
  m.result(result);
  logits(m, wanted(m, result), 1, cap);
}

}  // namespace

extern const ModelArch gemma4;
const ModelArch gemma4{"gemma4", record_gemma4};

}  // namespace gimbal::arch
