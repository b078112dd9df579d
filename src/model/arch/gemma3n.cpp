// Gemma 3n: four streams side by side, of which a layer computes one and guesses the others (AltUp); beside
// attention a product of low rank (Laurel); a vector of its own for every layer and token; and the first
// layers keep only the largest values of their gates.
// Google DeepMind, "Gemma 3n", 2025; Baykal et al., "Alternating Updates for Efficient Transformers", 2023.
#include <cmath>

#include "model/arch/gemma.h"

namespace gimbal::arch {
namespace {

constexpr int kStreams = 4, kLaurelRank = 64;  // not in the file, nor are the next ones
constexpr int kOwnLayers = 20;                 // the first layers with keys and values of their own
constexpr int kSparseLayers = 10;              // the first layers with sparse gates
constexpr double kCut = 1.6448533535003662;    // deviations above the mean: 95 % are below
constexpr float kTiny = 1e-30f;                // only against a division by 0

using Streams = std::vector<Value>;  // kStreams of [d, R]

// ---- rows as vectors; numbers of a row are f32[1, R]

// a [m, R], and b [n, R] behind it.
Value joined(Recorder& m, Value a, Value b) {
  ProgramBuilder& p = m.p;
  auto one_head = [&](Value v) { return p.split_heads(v, int(p.shape(v).dim[0])); };
  return p.join_heads(p.concat(one_head(a), one_head(b)));
}

// x [d, n, R] added up, each times its weight [n, R]: `combine` without scales reads weights alone, so that
// any numbers will do where it has those of experts.
Value weighted_sum(Recorder& m, Value x, Value weights) {
  return m.p.combine(x, joined(m, weights, weights));
}
Value dot(Recorder& m, Value x, Value y) { return weighted_sum(m, m.p.split_heads(x, 1), y); }

Value unit(Recorder& m, Value x) { return m.p.norm(x, NormKind::Length, kTiny); }
Value length(Recorder& m, Value x) { return dot(m, x, unit(m, x)); }

// max(0, x - (mean + kCut * deviation)) of x [n, R]; the deviation is that of a sample, over n - 1.
Value largest(Recorder& m, Value x) {
  ProgramBuilder& p = m.p;
  const auto n = double(p.shape(x).dim[0]);
  // z is x - mean in units of the deviation over n, which is the sum of x * z, over n.
  const Value z = p.norm(x, NormKind::Layer, kTiny);
  const Value deviation = p.scale(dot(m, x, z), float(1 / n));
  const Value halves = p.map(OpKind::Sigmoid, p.scale(z, 0));
  const Value above = p.add(z, p.scale(halves, float(-2 * kCut * std::sqrt(n / (n - 1)))));
  // So steep a sigmoid is 0 below 0, and 1 above.
  const Value kept = p.mul(above, p.map(OpKind::Sigmoid, p.scale(above, 1e20f)));
  return p.mul(kept, deviation);
}

// ---- streams

Streams begin(Recorder& m, Value x) {
  const int d = m.config.width;
  const Value size = length(m, x);
  Streams s = {x};
  for (int j = 0; j < kStreams - 1; j++) {
    const Value y = m.one_product("altup_proj", d, j, kStreams - 1, x);
    s.push_back(m.p.mul(unit(m, y), size));
  }
  return s;
}

Value end(Recorder& m, Streams s) {
  const int d = m.config.width;
  for (Value& v : s) v = wanted(m, v);
  const Value size = length(m, s[0]);
  Value sum = s[0];
  for (int j = 0; j < kStreams - 1; j++) {
    const Value y = m.one_product("altup_unembd_proj", d, j, kStreams - 1, s[size_t(j) + 1]);
    sum = m.p.add(sum, m.p.mul(unit(m, y), size));
  }
  return m.p.scale(sum, 1.0f / kStreams);
}

// The weights of the streams in a layer's input.
Value modalities(Recorder& m, Value x) {
  const Value y = m.p.scale(rms_norm(m, "altup_router_norm", x), 1 / float(m.config.width));
  return m.p.map(OpKind::SoftCap, project(m, "altup_router", kStreams, y), 1);
}

Streams predicted(Recorder& m, const Streams& s) {
  ProgramBuilder& p = m.p;
  const Value weights = project(m, "altup_predict_coef", kStreams * kStreams, modalities(m, s[0]));
  Value all = s[0];
  for (size_t j = 1; j < s.size(); j++) all = joined(m, all, s[j]);
  all = p.split_heads(all, m.config.width);
  Streams result;
  for (int j = 0; j < kStreams; j++)
    result.push_back(p.add(s[size_t(j)], weighted_sum(m, all, p.slice(weights, j * kStreams, kStreams))));
  return result;
}

// Corrects the predictions by the layer's result for the first one.
Streams corrected(Recorder& m, const Streams& predictions, Value made) {
  ProgramBuilder& p = m.p;
  const Value news = p.add(made, p.scale(predictions[0], -1));
  const Value weights = project(m, "altup_correct_coef", kStreams, modalities(m, made));
  Streams result;
  for (int j = 0; j < kStreams; j++)
    result.push_back(p.add(predictions[size_t(j)], p.add(news, p.mul(news, p.slice(weights, j, 1)))));
  return result;
}

// ---- a layer

Value laurel(Recorder& m, Value x) {
  const Value y = project(m, "laurel_r", m.config.width, project(m, "laurel_l", kLaurelRank, x));
  return m.p.add(x, rms_norm(m, "laurel_post_norm", y));
}

Value feed_forward(Recorder& m, Value x) {
  const int f = ff_width(m, m.current_layer());
  if (f < 2) m.hyper.fail(Code::Malformed, "gemma3n.feed_forward_length is 1, which has no deviation");
  Value gate = project(m, "ffn_gate", f, x);
  if (m.current_layer() < kSparseLayers) gate = largest(m, gate);
  const Value y = m.p.record(OpKind::GeluGlu, {gate, project(m, "ffn_up", f, x)});
  return project(m, "ffn_down", m.config.width, y);
}

void record_gemma3n(Recorder& m) {
  ProgramBuilder& p = m.p;
  Attention global = attention(m), local = global;
  global.scale = local.scale = 1;
  local.window = window_size(m);
  const Value angles = rope_table(m), local_angles = window_rope_table(m);
  const int width = m.hyper.count("embedding_length_per_layer_input", 256);
  const Value x = token_embedding(m, std::sqrt(float(m.config.width)));
  const Value inputs = layer_inputs(m, width, x);
  Streams s = begin(m, x);
  std::optional<Remembered> last_local, last_global;
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const bool windowed = has_window(m, i, 5);
    const Streams predictions = predicted(m, s);
    const Value a = predictions[0], h = rms_norm(m, "attn_norm", a), low = laurel(m, h);
    const Value attended = sharing_attention(m, windowed ? local : global, windowed ? local_angles : angles,
                                             windowed ? last_local : last_global, i < kOwnLayers, h);
    const Value t = p.add(a, rms_norm(m, "post_attention_norm", attended));
    const Value u = p.scale(p.add(t, low), std::sqrt(0.5f));
    const Value f = p.add(u, rms_norm(m, "post_ffw_norm", feed_forward(m, rms_norm(m, "ffn_norm", u))));

    s = corrected(m, predictions, f);
    const Value scales = m.vector("altup_correct_scale.weight", m.config.width);
    const Value first = p.norm(s[0], NormKind::None, 0, scales);
    const Value more = of_layer_input(m, p.slice(inputs, i * width, width), first);
    for (size_t j = 1; j < s.size(); j++) s[j] = p.add(s[j], more);
  }
  if (m.failed()) return;
  logits(m, rms_norm(m, "output_norm", end(m, s)), 1,
         float(m.hyper.number("final_logit_softcapping", 30, 0)));
}

}  // namespace

extern const ModelArch gemma3n;
const ModelArch gemma3n{"gemma3n", record_gemma3n};

}  // namespace gimbal::arch
