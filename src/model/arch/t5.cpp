// The encoder of T5: no positions, but a bias of each score by the distance of key and row, in buckets that
// grow with the distance. Raffel et al., "Exploring the Limits of Transfer Learning with a Unified
// Text-to-Text Transformer", 2020; with a gate it is T5 1.1: Shazeer, "GLU Variants Improve Transformer",
// 2020.
#include <algorithm>

#include "base/fixed_math.h"
#include "base/format.h"
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

constexpr int kFarthest = 128;  // keys from here on are all alike; no key of GGUF's files has this

// Of a distance to one side: one for each distance up to half of them, then ever wider ones.
int bucket(int distance, int buckets) {
  const int exact = buckets / 2;
  if (distance < exact) return distance;
  const double grown = fixed::log(double(distance) / exact) / fixed::log(double(kFarthest) / exact);
  // Where the quotient is a whole number, its rounding must not decide.
  return std::min(buckets - 1, exact + int(grown * (buckets - exact) + 1e-9));
}

// For each head the bias of each distance of a key from its row, -kFarthest to kFarthest. The file has a
// column of heads for each bucket: those of earlier keys, then those of later ones.
Value biases(Recorder& m, int heads, int buckets) {
  const std::vector<float> table = m.read_values("attn_rel_b.weight", heads, buckets);
  std::vector<float> all;
  for (int h = 0; h < heads; h++)
    for (int d = -kFarthest; d <= kFarthest; d++) {
      const int column = bucket(std::abs(d), buckets / 2) + (d > 0 ? buckets / 2 : 0);
      all.push_back(table[size_t(column) * size_t(heads) + size_t(h)]);
    }
  return m.constant(format("biases of distances {}", m.current_layer()), std::move(all));
}

int count_buckets(Recorder& m) {
  const char* key = "attention.relative_buckets_count";
  const int n = m.hyper.count(key);
  if (n % 2 == 0 && n >= 4 && n / 4 < kFarthest) return n;
  m.hyper.fail(Code::Unsupported, format("{}.{} is {}; this version computes even numbers from 4 to {}",
                                         m.config.arch, key, n, 4 * kFarthest - 2));
  return 4;
}

void record_t5_encoder(Recorder& m) {
  ProgramBuilder& p = m.p;
  Attention a = all_seen(m);
  a.scale = 1, a.distances = kFarthest;
  const int buckets = count_buckets(m);
  m.leave_out("output.weight");
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, "enc.");
    // The first layer's serve all that have none of their own.
    if (i == 0 || m.has("attn_rel_b.weight")) a.biases = biases(m, a.heads, buckets);
    const Heads h = project_heads(m, a, rms_norm(m, "attn_norm", x));
    x = p.add(x, project(m, "attn_o", m.config.width, attend(m, a, h)));
    const Value y = rms_norm(m, "ffn_norm", x);
    x = p.add(x, m.has("ffn_gate.weight") ? glu(m, y, OpKind::GeluGlu) : mlp(m, y, OpKind::Relu));
  }
  m.output(Output::Hidden, rms_norm(m, "enc.output_norm", wanted(m, x)));
}

}  // namespace

extern const ModelArch t5encoder;
const ModelArch t5encoder{"t5encoder", record_t5_encoder, configure_attention, true};

}  // namespace gimbal::arch
