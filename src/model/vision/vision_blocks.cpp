#include "model/vision/vision_blocks.h"

#include <cmath>
#include <cstring>

#include "base/fixed_math.h"
#include "base/format.h"

namespace gimbal::vision {
namespace {

void copy_floats(std::byte* to, const float* from, size_t n) { std::memcpy(to, from, n * sizeof(float)); }

// By pair: radians for each line, and for each column.
struct Turn {
  double line, column;
};

std::vector<Turn> turns(PatchAngles kind, int head, double base) {
  std::vector<Turn> all;
  const int half = head / 4;  // of the pairs
  for (int i = 0; i < head / 2; i++) {
    const bool lower = i < half, by_line = lower != (kind == PatchAngles::ColumnFirst);
    const int j = lower ? i : i - half;
    const int exponent = lower || kind != PatchAngles::Pixtral ? 4 * j : 4 * j + 2;
    const double f = fixed::pow(base, -double(exponent) / head);
    all.push_back(by_line ? Turn{f, 0} : Turn{0, f});
  }
  return all;
}

Value one_head(Recorder& m, Value x) { return m.p.split_heads(x, arch::width_of(m, x)); }

}  // namespace

Value pixels(Recorder& m) {
  const int patch = m.hyper.count("patch_size");
  const int pixels = arch::bounded(m, "patch_size", 3 * int64_t(patch) * patch);
  return m.patch_input("pixels", DType::F32, pixels, [pixels](const PatchRow& r, std::byte* to) {
    copy_floats(to, r.pixels, size_t(pixels));
  });
}

Value times_kernel(Recorder& m, Value pixels) {
  return m.p.linear(m.matrix("patch_embd.weight", arch::width_of(m, pixels), m.config.width), pixels,
                    m.optional_vector("patch_embd.bias", m.config.width));
}

Value patches(Recorder& m) { return m.p.add(times_kernel(m, pixels(m)), positions(m)); }

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

Value attended(Recorder& m, const Blocks& b, const arch::Attention& a, const arch::Heads& h) {
  const arch::Remembered cache{b.pool, b.keys, b.values};
  arch::write_heads(m, cache, h);
  return arch::attend_to(m, a, cache, h.q);
}

Value all_blocks(Recorder& m, const Blocks& b, Value x) {
  for (int i = 0; i < m.config.layers && !m.failed(); i++) x = block(m, b, i, x);
  m.no_layer();
  return x;
}

Value block(Recorder& m, const Blocks& b, int i, Value x, bool in_window) {
  m.layer(i);
  ProgramBuilder& p = m.p;
  arch::Attention a = arch::attention(m);
  arch::Heads h = arch::project_heads(m, a, norm_by(m, b.norm, "ln1", x));
  if (m.has("attn_q_norm.weight"))
    h.q = norm_by(m, b.norm, "attn_q_norm", h.q), h.k = norm_by(m, b.norm, "attn_k_norm", h.k);
  if (b.angles) h = arch::rotated(m, h, *b.angles, b.pairs);
  a.seen = in_window ? b.window : b.all;
  const Value y = attended(m, b, a, h);
  x = p.add(x, scaled_by(m, "ls1", arch::project(m, "attn_out", m.config.width, y)));
  const Value z = norm_by(m, b.norm, "ln2", x);
  const Value hidden = b.gated   ? p.swiglu(product(m, "ffn_gate", z), product(m, "ffn_up", z))
                       : b.exact ? p.map(OpKind::GeluErf, product(m, "ffn_up", z))
                                 : activated(m, product(m, "ffn_up", z));
  return p.add(x, scaled_by(m, "ls2", arch::project(m, "ffn_down", m.config.width, hidden)));
}

Value patch_angles(Recorder& m, PatchAngles kind, double base) {
  const int head = m.config.head_dim;
  if (head % 4)
    m.hyper.fail(Code::Malformed,
                 format("the encoder's heads have {} values, which lines and columns cannot turn", head));
  return m.patch_input("rope", DType::F32, std::max(2, head / 2 * 2),
                       [all = turns(kind, head, base)](const PatchRow& r, std::byte* to) {
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

Value two_products(Recorder& m, const std::string& first, const std::string& second, Value x,
                   std::optional<OpKind> activation) {
  x = product(m, first, x);
  return product(m, second, activation ? m.p.map(*activation, x) : activated(m, x));
}

Value joined_values(Recorder& m, Value a, Value b) {
  return m.p.join_heads(m.p.concat(one_head(m, a), one_head(m, b)));
}

Value joined_of(Recorder& m, std::span<const Value> parts) {
  Value all = parts[0];
  for (Value part : parts.subspan(1)) all = joined_values(m, all, part);
  return all;
}

Value mean_of(Recorder& m, std::span<const Value> parts) {
  Value sum = parts[0];
  for (Value part : parts.subspan(1)) sum = m.p.add(sum, part);
  return m.p.scale(sum, 1.0f / float(parts.size()));
}

// The rows of a result, of the first, second, ... of its patches.
static std::vector<Value> of_results(Recorder& m, Value x, int n) {
  std::vector<Value> parts;
  for (int i = 0; i < n; i++) parts.push_back(m.p.select_rows(x, m.wanted_rows(i)));
  return parts;
}

Value joined(Recorder& m, Value x, int n) { return joined_of(m, of_results(m, x, n)); }
Value mean(Recorder& m, Value x, int n) { return mean_of(m, of_results(m, x, n)); }

}  // namespace gimbal::vision
