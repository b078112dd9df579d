// Gemma 4: heads that columns and lines rotate, norms before and behind each half of a block, products whose
// values have limits; squares of patches become their mean. And its form without an encoder, whose rows are
// patches, normed three times. Gemma Team, "Gemma 4", 2026.
#include <cmath>

#include "model/vision/vision_blocks.h"

namespace gimbal::vision {
namespace {

constexpr double kRopeBase = 100;

// Values from the least to the greatest that the file allows (VisionFile has them as a distance from their
// middle).
Value limited(Recorder& m, const std::string& name, Value x) {
  const auto limit = m.optional_number(name);
  if (!limit) return x;
  ProgramBuilder& p = m.p;
  const int width = arch::width_of(m, x);
  const auto ones = m.optional_vector(name + ".ones", width);
  if (!ones) return p.map(OpKind::Clamp, x, *limit);
  x = p.norm(x, NormKind::None, 0, *ones, m.vector(name + ".before", width));
  return p.norm(p.map(OpKind::Clamp, x, *limit), NormKind::None, 0, *ones, m.vector(name + ".behind", width));
}

Value limited_product(Recorder& m, const std::string& name, Value x) {
  return limited(m, name + ".output_limit", product(m, name, limited(m, name + ".input_limit", x)));
}

Value normed(Recorder& m, Value x) { return m.p.norm(x, NormKind::Rms, m.config.norm_epsilon); }

// Each half of a head has its own pairs of values, half of it apart: exchanging the two quarters in the
// middle makes pairs of the whole head.
Value in_pairs(Recorder& m, Value heads) {
  ProgramBuilder& p = m.p;
  const int n = arch::width_of(m, heads) / 4;
  const auto quarter = [&](int i) { return p.slice(heads, i * n, n); };
  return p.concat(p.concat(quarter(0), quarter(2)), p.concat(quarter(1), quarter(3)));
}

Value gemma4_block(Recorder& m, const Blocks& b, int i, Value x) {
  m.layer(i);
  ProgramBuilder& p = m.p;
  arch::Attention a = arch::attention(m);
  a.scale = 1, a.seen = b.all;
  const Value z = arch::rms_norm(m, "ln1", x);
  const auto heads = [&](const char* name) { return p.split_heads(limited_product(m, name, z), a.head_dim); };
  arch::Heads h{heads("attn_q"), heads("attn_k"), normed(m, heads("attn_v"))};
  h.q = in_pairs(m, arch::rms_norm(m, "attn_q_norm", h.q));
  h.k = in_pairs(m, arch::rms_norm(m, "attn_k_norm", h.k));
  const Value y = attended(m, b, a, arch::rotated(m, h, *b.angles, b.pairs));
  x = p.add(x, arch::rms_norm(m, "attn_post_norm", limited_product(m, "attn_out", y)));
  const Value seen = arch::rms_norm(m, "ln2", x);
  const Value hidden =
      p.record(OpKind::GeluGlu, {limited_product(m, "ffn_gate", seen), limited_product(m, "ffn_up", seen)});
  x = p.add(x, arch::rms_norm(m, "ffn_post_norm", limited_product(m, "ffn_down", hidden)));
  if (!m.has("out_scale.weight")) return x;
  return p.norm(x, NormKind::None, 0, m.vector("out_scale.weight", m.config.width));
}

void record_gemma4v(Recorder& m) {
  ProgramBuilder& p = m.p;
  const int width = m.config.width;
  Value x = patches(m);
  const Blocks b = blocks(m, {.angles = patch_angles(m, PatchAngles::ColumnFirst, kRopeBase)});
  for (int i = 0; i < m.config.layers && !m.failed(); i++) x = gemma4_block(m, b, i, x);
  m.no_layer();
  x = p.scale(mean(m, x, patches_per_row(m)), std::sqrt(float(width)));
  if (m.has("std_shift"))
    x = p.norm(x, NormKind::None, 0, m.vector("std_scale", width), m.vector("std_shift", width));
  m.output(Output::Hidden, limited_product(m, "mm.input_projection", normed(m, x)));
}

void record_gemma4uv(Recorder& m) {
  constexpr float kEpsilon = 1e-5f;  // of the three norms, whatever the file's is
  const auto norm = [&](int number, Value x) {
    const std::string name = "patch_norm." + std::to_string(number);
    const int width = arch::width_of(m, x);
    return m.p.norm(x, NormKind::Layer, kEpsilon, m.vector(name + ".weight", width),
                    m.vector(name + ".bias", width));
  };
  const Value patch = norm(2, times_kernel(m, norm(1, pixels(m))));
  const Value x = norm(3, m.p.add(patch, positions(m)));
  m.output(Output::Hidden, product(m, "mm.input_projection", normed(m, m.p.select_rows(x, m.wanted_rows()))));
}

}  // namespace

extern const VisionArch gemma4v, gemma4uv;
const VisionArch gemma4v{.projector = "gemma4v",
                         .record = record_gemma4v,
                         .positions = PatchPositions::Axes,
                         .together = true,
                         .not_together = {1536, 2560},
                         .signed_pixels = true};
const VisionArch gemma4uv{.projector = "gemma4uv",
                          .record = record_gemma4uv,
                          .positions = PatchPositions::Axes,
                          .together = true,
                          .own_bias = true,
                          .blocks = false};

}  // namespace gimbal::vision
