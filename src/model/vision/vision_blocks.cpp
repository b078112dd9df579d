#include "model/vision/vision_blocks.h"

#include <cmath>
#include <cstring>

#include "base/fixed_math.h"
#include "base/format.h"

namespace gimbal::vision {
namespace {

constexpr double kRopeBase = 10000;

void copy_floats(std::byte* to, const float* from, size_t n) { std::memcpy(to, from, n * sizeof(float)); }

// By pair: radians for each line, and for each column.
struct Turn {
  double line, column;
};

std::vector<Turn> turns(PatchAngles kind, int head) {
  std::vector<Turn> all;
  const int half = head / 4;  // of the pairs
  for (int i = 0; i < head / 2; i++) {
    const bool by_line = i < half;
    const int j = by_line ? i : i - half;
    const int exponent = by_line || kind == PatchAngles::Qwen ? 4 * j : 4 * j + 2;
    const double f = fixed::pow(kRopeBase, -double(exponent) / head);
    all.push_back(by_line ? Turn{f, 0} : Turn{0, f});
  }
  return all;
}

Value one_head(Recorder& m, Value x) { return m.p.split_heads(x, arch::width_of(m, x)); }

}  // namespace

Value patches(Recorder& m) {
  const int patch = m.hyper.count("patch_size");
  const int pixels = arch::bounded(m, "patch_size", 3 * int64_t(patch) * patch);
  const Value x = m.patch_input("pixels", DType::F32, pixels, [pixels](const PatchRow& r, std::byte* to) {
    copy_floats(to, r.pixels, size_t(pixels));
  });
  const Value y = m.p.linear(m.matrix("patch_embd.weight", pixels, m.config.width), x);
  return m.p.add(y, positions(m));
}

Value positions(Recorder& m) {
  const auto width = size_t(m.config.width);
  return m.patch_input("bias and position", DType::F32, m.config.width,
                       [width](const PatchRow& r, std::byte* to) { copy_floats(to, r.added, width); });
}

Value seen_in_window(Recorder& m) {
  return m.patch_input("seen in window", DType::I32, 2, [](const PatchRow& r, std::byte* to) {
    const int32_t seen[] = {r.first, r.last};
    std::memcpy(to, seen, sizeof seen);
  });
}

Blocks blocks(Recorder& m, Blocks b) {
  const arch::Attention a = arch::attention(m);
  b.pool = m.paged();
  b.keys = m.keys("keys", b.pool, a.head_dim, a.kv_heads);
  b.values = m.values("values", b.pool, a.value_dim, a.kv_heads);
  b.all = m.seen_both(-1, -1);
  return b;
}

Value norm_by(Recorder& m, Blocks::Norm norm, const std::string& name, Value x) {
  return norm == Blocks::Norm::Rms ? arch::rms_norm(m, name, x) : arch::layer_norm(m, name, x);
}

Value product(Recorder& m, const std::string& name, Value x) {
  return arch::project(m, name, std::max(1, m.rows(name + ".weight")), x);
}

static Value scaled_by(Recorder& m, const std::string& name, Value x) {
  if (!m.has(name + ".weight")) return x;
  return m.p.norm(x, NormKind::None, 0, m.vector(name + ".weight", arch::width_of(m, x)));
}

Value block(Recorder& m, const Blocks& b, int i, Value x, bool in_window) {
  m.layer(i);
  ProgramBuilder& p = m.p;
  arch::Attention a = arch::attention(m);
  arch::Heads h = arch::project_heads(m, a, norm_by(m, b.norm, "ln1", x));
  if (b.angles) h = arch::rotated(m, h, *b.angles, b.pairs);
  p.cache_write(b.keys, true, h.k, m.positions(), m.sequences(), m.pages(b.pool));
  p.cache_write(b.values, false, h.v, m.positions(), m.sequences(), m.pages(b.pool));
  a.seen = in_window ? b.window : b.all;
  const Value y = arch::attend_to(m, a, {b.pool, b.keys, b.values}, h.q);
  x = p.add(x, scaled_by(m, "ls1", arch::project(m, "attn_out", m.config.width, y)));
  const Value z = norm_by(m, b.norm, "ln2", x);
  const Value hidden = b.gated   ? p.swiglu(product(m, "ffn_gate", z), product(m, "ffn_up", z))
                       : b.exact ? p.map(OpKind::GeluErf, product(m, "ffn_up", z))
                                 : activated(m, product(m, "ffn_up", z));
  return p.add(x, scaled_by(m, "ls2", arch::project(m, "ffn_down", m.config.width, hidden)));
}

Value patch_angles(Recorder& m, PatchAngles kind) {
  const int head = m.config.head_dim;
  if (head % 4)
    m.hyper.fail(Code::Malformed,
                 format("the encoder's heads have {} values, which lines and columns cannot turn", head));
  return m.patch_input("rope", DType::F32, std::max(2, head / 2 * 2),
                       [all = turns(kind, head)](const PatchRow& r, std::byte* to) {
                         for (const Turn& t : all) {
                           const double angle = r.line * t.line + r.column * t.column;
                           const float pair[] = {float(fixed::cos(angle)), float(fixed::sin(angle))};
                           copy_floats(to, pair, 2), to += sizeof pair;
                         }
                       });
}

Value activated(Recorder& m, Value x) {
  const auto uses = [&](const char* key) { return m.metadata().boolean(key).value_or(false); };
  if (uses("clip.use_gelu")) return m.p.map(OpKind::Gelu, x);
  if (uses("clip.use_silu")) return m.p.map(OpKind::Silu, x);
  return m.p.mul(x, m.p.map(OpKind::Sigmoid, m.p.scale(x, 1.702f)));
}

int patches_per_row(Recorder& m) { return m.hyper.count("patches_per_row"); }

Value joined(Recorder& m, Value x, int n) {
  Value all = m.p.select_rows(x, m.wanted_rows());
  for (int i = 1; i < n; i++)
    all = m.p.join_heads(m.p.concat(one_head(m, all), one_head(m, m.p.select_rows(x, m.wanted_rows(i)))));
  return all;
}

Value mean(Recorder& m, Value x, int n) {
  Value sum = m.p.select_rows(x, m.wanted_rows());
  for (int i = 1; i < n; i++) sum = m.p.add(sum, m.p.select_rows(x, m.wanted_rows(i)));
  return m.p.scale(sum, 1.0f / float(n));
}

}  // namespace gimbal::vision
