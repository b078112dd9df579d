// Hunyuan's dense models: heads rotated by halves, and those of q and k normed after that. Maincoder: the
// same with neighbours rotated together.
// Tencent, "Hunyuan-A13B Technical Report", 2025; Maincode, "Maincoder-1B", 2025.
#include <cmath>

#include "base/fixed_math.h"
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

// Long contexts come from a larger base; files have that base, or `alpha`, from which it follows.
double rope_base(Recorder& m) {
  const Config& c = m.config;
  const double alpha = m.hyper.positive("rope.scaling.alpha", 1);
  return c.head_dim > 2 ? c.rope_base * fixed::pow(alpha, c.head_dim / (c.head_dim - 2.0)) : c.rope_base;
}

void record_like_hunyuan(Recorder& m, RopePairs pairs, double base) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = m.rope({.rotated = m.config.rotated, .base = base});
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    Heads h = rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)), angles, pairs);
    h.q = rms_norm(m, "attn_q_norm", h.q), h.k = rms_norm(m, "attn_k_norm", h.k);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    x = p.add(x, glu(m, rms_norm(m, "ffn_norm", x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

void record_hunyuan(Recorder& m) { record_like_hunyuan(m, RopePairs::Halves, rope_base(m)); }
void record_maincoder(Recorder& m) { record_like_hunyuan(m, RopePairs::Adjacent, m.config.rope_base); }

}  // namespace

extern const ModelArch hunyuan_dense, maincoder;
const ModelArch hunyuan_dense{"hunyuan-dense", record_hunyuan};
const ModelArch maincoder{"maincoder", record_maincoder};

}  // namespace gimbal::arch
