// Apertus: a llama that norms each head of q and k before it rotates them by halves, and whose feed-forward
// layer has no gate but xIELU: quadratic above 0, exponential below, with learned weights for each layer.
// Swiss AI Initiative, "Apertus: Democratizing Open and Compliant LLMs for Global Language Environments",
// 2025; Huang and Schlag, "Deriving Activation Functions Using Integration", 2024.
#include <algorithm>
#include <cmath>

#include "base/fixed_math.h"
#include "base/format.h"
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

// Files have the weights before softplus keeps them positive.
double softplus(double x) { return std::max(x, 0.0) + fixed::log(1 + fixed::exp(-std::fabs(x))); }

// A layer's value of a key that has one number for all layers, or a list. These keys have no prefix.
double learned(Recorder& m, const std::string& key, int layer) {
  const int layers = m.config.layers + m.config.left_out;
  if (const MetadataArray* list = m.metadata().array(key)) {
    const std::vector<float> values = list->floats();
    if (values.size() == size_t(layers) && std::isfinite(values[size_t(layer)])) return values[size_t(layer)];
  } else if (const auto one = m.metadata().number(key); one && std::isfinite(float(*one))) {
    return *one;
  }
  m.hyper.fail(
      Code::Malformed,
      format("metadata key '{}': expected a finite number, or one for each of {} layers", key, layers));
  return 1;
}

// p max(x, 0)^2 + beta x + n (e^m - 1 - m), m = min(x, 0). Files also have a bound eps, such as -1e-6, that
// the exponent m does not exceed. It keeps training stable, and changes no value by more than n |eps|.
Value xielu(Recorder& m, int layer, Value x) {
  ProgramBuilder& p = m.p;
  constexpr double kLeastEps = -1e-4;
  if (const double eps = learned(m, "xielu.eps", layer); eps < kLeastEps)
    m.hyper.fail(Code::Unsupported, format("xielu.eps is {} in layer {}; this version computes models whose "
                                           "bound is at least {}, where it changes nothing",
                                           eps, layer, kLeastEps));
  const double beta = learned(m, "xielu.beta", layer);
  const auto above = float(softplus(learned(m, "xielu.alpha_p", layer))),
             below = float(beta + softplus(learned(m, "xielu.alpha_n", layer)));
  const Value square = p.scale(p.map(OpKind::SquaredRelu, x), above);
  const Value upper = p.add(square, p.scale(x, float(beta)));
  const Value away = p.map(OpKind::Relu, p.scale(x, -1));  // -m
  const Value one = p.map(OpKind::Exp, p.scale(away, 0));  // no op adds a number to all values
  const Value rest = p.add(p.add(p.map(OpKind::Exp, p.scale(away, -1)), p.scale(one, -1)), away);
  return p.add(upper, p.scale(rest, below));
}

void record_apertus(Recorder& m) {
  ProgramBuilder& p = m.p;
  Attention a = attention(m);
  a.scale = float(m.hyper.positive("attention.scale", a.scale));
  const Value angles = rope_table(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    Heads h = project_heads(m, a, rms_norm(m, "attn_norm", x));
    h.q = rms_norm(m, "attn_q_norm", h.q), h.k = rms_norm(m, "attn_k_norm", h.k);
    h = rotated(m, h, angles, RopePairs::Halves);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    const Value up = project(m, "ffn_up", ff_width(m, i), rms_norm(m, "ffn_norm", x));
    x = p.add(x, project(m, "ffn_down", m.config.width, xielu(m, i, up)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch apertus;
const ModelArch apertus{"apertus", record_apertus};

}  // namespace gimbal::arch
