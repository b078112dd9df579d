#include "model/arch/recurrent.h"

#include <algorithm>
#include <cmath>

namespace gimbal::arch {
namespace {

// `<name>.weight` [taps, channels] over the last rows of x, and `<name>.bias` where the file has it.
Value convolution(Recorder& m, const std::string& name, int taps, Value x) {
  const int channels = width_of(m, x);
  const LayerState s = layer_state(m, name, int64_t(channels) * std::max(1, taps - 1));
  std::vector<Value> in = {x, m.table(name + ".weight", taps, channels), s.values, s.sequences, s.pages};
  if (auto bias = m.optional_vector(name + ".bias", channels)) in.push_back(*bias);
  return m.p.record(OpKind::ShortConv, in);
}

// Rows [first, first + n) of the product with `<name>.weight`, which has `all` of them.
struct Rows {
  int first, n, all;
};
Value project_rows(Recorder& m, const std::string& name, Rows r, Value x, std::optional<Value> bias = {}) {
  return m.product(name, r.first, r.n, r.all, x, bias);
}

struct Sizes {
  int taps, inner, state, rank, groups;
};
// Under "ssm."; group_count where `grouped`. Products of any two of them are counts again.
Sizes read_sizes(Recorder& m, bool grouped) {
  Hyperparameters& h = m.hyper;
  const Sizes s{h.count("ssm.conv_kernel"), h.count("ssm.inner_size"), h.count("ssm.state_size"),
                h.count("ssm.time_step_rank"), grouped ? h.count("ssm.group_count") : 1};
  const int64_t channels = int64_t(s.inner) + 2 * int64_t(s.groups) * s.state;
  if (channels > kMaxCount || channels * std::max(s.taps, s.state) > kMaxCount) {
    h.fail(Code::Malformed, m.config.arch + ".ssm: " + std::to_string(channels) + " channels with " +
                                std::to_string(s.taps) + " taps and a state of " + std::to_string(s.state) +
                                " each are more than any model has");
    return {1, 1, 1, 1, 1};
  }
  return s;
}
// Checks that b divides a, for two keys that must be so.
bool divides(Recorder& m, const char* a_key, int a, const char* b_key, int b) {
  if (a % b == 0) return true;
  m.hyper.fail(Code::Malformed, m.config.arch + "." + a_key + " " + std::to_string(a) +
                                    " is not a multiple of " + b_key + " " + std::to_string(b));
  return false;
}

}  // namespace

LayerState layer_state(Recorder& m, const std::string& name, int64_t values) {
  const size_t pool = m.recurrent();
  return {m.state(name, pool, Shape(DType::F32, {values})), m.sequences(), m.pages(pool)};
}

std::optional<Attention> attention_of_layer(Recorder& m, int layer) {
  Attention a = attention(m);
  a.heads = m.hyper.count_of("attention.head_count", layer);
  a.kv_heads = m.hyper.count_of("attention.head_count_kv", layer, a.heads);
  if (a.kv_heads == 0) return std::nullopt;
  if (a.heads == 0 || a.heads % a.kv_heads) {
    m.hyper.fail(Code::Malformed, m.config.arch + ": layer " + std::to_string(layer) + " has " +
                                      std::to_string(a.heads) + " attention heads, not a multiple of its " +
                                      std::to_string(a.kv_heads) + " heads of keys");
    return attention(m);
  }
  return a;
}

// Ops with a vector of weights apply it along a row. So a vector that is added to a row, or multiplied by
// head, is first made a row: 0 * v + v.
Value for_each_row(Recorder& m, Value vector, Value like) {
  return m.p.norm(m.p.map(OpKind::Clamp, like, 0), NormKind::None, 0, vector, vector);
}

Value mamba_mixer(Recorder& m, Value x, StepNorm kind) {
  ProgramBuilder& p = m.p;
  const Sizes s = read_sizes(m, false);
  const Value values = project_rows(m, "ssm_in", {0, s.inner, 2 * s.inner}, x),
              z = project_rows(m, "ssm_in", {s.inner, s.inner, 2 * s.inner}, x);
  const Value u = p.map(OpKind::Silu, convolution(m, "ssm_conv1d", s.taps, values));
  auto part = [&](int first, int n, const char* norm) {
    const Value y = project_rows(m, "ssm_x", {first, n, s.rank + 2 * s.state}, u);
    if (kind == StepNorm::Weighted) return rms_norm(m, norm, y);
    return kind == StepNorm::None ? y : p.norm(y, NormKind::Rms, m.config.norm_epsilon);
  };
  const Value few = part(0, s.rank, "ssm_dt_norm"), b = part(s.rank, s.state, "ssm_b_norm"),
              c = part(s.rank + s.state, s.state, "ssm_c_norm");
  const Value step = p.map(OpKind::Softplus, project(m, "ssm_dt", s.inner, few, Bias::Needed));
  const LayerState seen = layer_state(m, "scan", int64_t(s.state) * s.inner);
  const Value y = p.join_heads(
      p.record(OpKind::SelectiveScan,
               {p.split_heads(u, 1), step, m.table("ssm_a", s.state, s.inner), p.split_heads(b, s.state),
                p.split_heads(c, s.state), seen.values, seen.sequences, seen.pages}));
  const Value passed = p.norm(u, NormKind::None, 0, m.vector("ssm_d", s.inner));
  return project(m, "ssm_out", width_of(m, x), p.swiglu(z, p.add(y, passed)));
}

Value mamba2_mixer(Recorder& m, Value x, OutputNorm norm) {
  ProgramBuilder& p = m.p;
  Sizes s = read_sizes(m, true);
  if (!divides(m, "ssm.inner_size", s.inner, "ssm.time_step_rank", s.rank) ||
      !divides(m, "ssm.time_step_rank", s.rank, "ssm.group_count", s.groups))
    s.rank = s.groups = 1;
  const int heads = s.rank, shared = s.groups * s.state, mixed = s.inner + 2 * shared,
            all = s.inner + mixed + heads;
  const Value z = project_rows(m, "ssm_in", {0, s.inner, all}, x),
              xbc = project_rows(m, "ssm_in", {s.inner, mixed, all}, x),
              dt =
                  project_rows(m, "ssm_in", {s.inner + mixed, heads, all}, x, m.vector("ssm_dt.bias", heads));
  const Value after = p.map(OpKind::Silu, convolution(m, "ssm_conv1d", s.taps, xbc));
  auto part = [&](int first, int n, int head) { return p.split_heads(p.slice(after, first, n), head); };
  const Value u = part(0, s.inner, s.inner / heads), b = part(s.inner, shared, s.state),
              c = part(s.inner + shared, shared, s.state);
  const LayerState seen = layer_state(m, "scan", int64_t(s.state) * s.inner);
  const Value y = p.record(OpKind::SelectiveScan, {u, p.map(OpKind::Softplus, dt), m.table("ssm_a", 1, heads),
                                                   b, c, seen.values, seen.sequences, seen.pages});
  const Value factors = for_each_row(m, m.table("ssm_d", 1, heads), dt);
  Value out = p.swiglu(z, p.join_heads(p.add(y, p.mul(u, p.split_heads(factors, 1)))));
  if (norm == OutputNorm::Needed || m.has("ssm_norm.weight")) {
    const int width = s.inner / s.groups;
    out = p.join_heads(p.norm(p.split_heads(out, width), NormKind::Rms, m.config.norm_epsilon,
                              m.table("ssm_norm.weight", width, s.groups)));
  }
  return project(m, "ssm_out", width_of(m, x), out);
}

Value plamo2_mixer(Recorder& m, Value x) {
  ProgramBuilder& p = m.p;
  Sizes s = read_sizes(m, false);
  if (!divides(m, "ssm.inner_size", s.inner, "ssm.time_step_rank", s.rank)) s.rank = 1;
  const int heads = s.rank, head = s.inner / heads, few = std::max(64, width_of(m, x) / 16);
  const Value both = p.split_heads(project(m, "ssm_in", 2 * s.inner, x), 2 * head);  // z and x of each head
  const Value z = p.join_heads(p.slice(both, 0, head)), values = p.join_heads(p.slice(both, head, head));
  const Value u = p.map(OpKind::Silu, convolution(m, "ssm_conv1d", s.taps, values));
  auto part = [&](int first, int n, const char* norm) {
    const Value y = project_rows(m, "ssm_x", {first, n, few + 2 * s.state}, u);
    return p.rms_norm(y, m.vector(norm, n), m.config.norm_epsilon);
  };
  const Value b = part(0, s.state, "ssm_b_norm"), c = part(s.state, s.state, "ssm_c_norm"),
              dt = project(m, "ssm_dt", heads, part(2 * s.state, few, "ssm_dt_norm"), Bias::Needed);
  const LayerState seen = layer_state(m, "scan", int64_t(s.state) * s.inner);
  const Value in_heads = p.split_heads(u, head);
  const Value y =
      p.record(OpKind::SelectiveScan,
               {in_heads, p.map(OpKind::Softplus, dt), m.vector("ssm_a", heads), p.split_heads(b, s.state),
                p.split_heads(c, s.state), seen.values, seen.sequences, seen.pages});
  const Value factors = for_each_row(m, m.vector("ssm_d", heads), dt);
  const Value passed = p.mul(in_heads, p.split_heads(factors, 1));
  return project(m, "ssm_out", width_of(m, x), p.swiglu(z, p.join_heads(p.add(y, passed))));
}

DeltaSizes read_delta(Recorder& m) {
  const Sizes s = read_sizes(m, true);
  if (!divides(m, "ssm.time_step_rank", s.rank, "ssm.group_count", s.groups)) return {1, 1, 1};
  if (int64_t(s.rank) * s.state == s.inner) return {s.state, s.groups, s.rank};
  m.hyper.fail(Code::Malformed, m.config.arch + ".ssm.inner_size " + std::to_string(s.inner) +
                                    " is not ssm.time_step_rank " + std::to_string(s.rank) +
                                    " heads of ssm.state_size " + std::to_string(s.state));
  return {1, 1, 1};
}

Value delta_net(Recorder& m, const DeltaSizes& s, const DeltaInputs& in) {
  ProgramBuilder& p = m.p;
  const float epsilon = m.config.norm_epsilon;
  const Value mixed =
      p.map(OpKind::Silu, convolution(m, "ssm_conv1d", m.hyper.count("ssm.conv_kernel"), in.qkv));
  auto part = [&](int first, int n) { return p.split_heads(p.slice(mixed, first, n), s.head); };
  auto unit = [&](int first) { return p.norm(part(first, s.keys()), NormKind::Length, epsilon); };
  const Value q = p.scale(unit(0), float(1 / std::sqrt(double(s.head)))), k = unit(s.keys()),
              v = part(2 * s.keys(), s.values());
  const Value decay =
      p.norm(p.map(OpKind::Softplus, in.alpha), NormKind::None, 0, m.vector("ssm_a", s.value_heads));
  const LayerState seen = layer_state(m, "delta", int64_t(s.head) * s.values());
  const Value y =
      p.record(OpKind::DeltaRule,
               {q, k, v, p.map(OpKind::Sigmoid, in.beta), decay, seen.values, seen.sequences, seen.pages},
               {{}, {int64_t(in.map)}});
  return project(m, "ssm_out", m.config.width, p.swiglu(in.z, p.join_heads(rms_norm(m, "ssm_norm", y))));
}

// S = diag(decay) S; S += rate k (v - S^T k)^T; y = S^T q, with found = S^T (decay k) of the state before it.
Value kimi_delta_net(Recorder& m, Value x) {
  ProgramBuilder& p = m.p;
  const int heads = m.config.heads, head = m.hyper.count("kda.head_dim"),
            taps = m.hyper.count("ssm.conv_kernel"),
            width = bounded(m, "attention.head_count and kda.head_dim", int64_t(heads) * head);
  bounded(m, "kda.head_dim, heads and ssm.conv_kernel", int64_t(width) * std::max(head, taps));
  const Heads all = project_heads(m, {heads, heads, head, head, 1}, x);
  auto mixed = [&](const char* name, Value v) {
    return p.split_heads(p.map(OpKind::Silu, convolution(m, name, taps, p.join_heads(v))), head);
  };
  auto unit = [&](Value v) { return p.norm(v, NormKind::Length, m.config.norm_epsilon); };
  const Value q = p.scale(unit(mixed("ssm_conv1d_q", all.q)), float(1 / std::sqrt(double(head)))),
              k = unit(mixed("ssm_conv1d_k", all.k)), v = mixed("ssm_conv1d_v", all.v);
  // By way of one head's width.
  auto narrow = [&](const std::string& name, std::optional<Value> bias) {
    return m.product(name + "_b", 0, width, width, project(m, name + "_a", head, x), bias);
  };
  const Value step = p.map(OpKind::Softplus, narrow("ssm_f", m.vector("ssm_dt.bias", width)));
  const Value beta = p.map(OpKind::Sigmoid, project(m, "ssm_beta", heads, x));
  const Value factor = p.split_heads(for_each_row(m, m.table("ssm_a", 1, heads), beta), 1);
  const Value decay = p.map(OpKind::Exp, p.mul(p.split_heads(step, head), factor));
  const Value added = p.mul(k, p.split_heads(beta, 1));
  const LayerState seen = layer_state(m, "delta", int64_t(head) * width);
  const Value y = p.record(OpKind::GatedRule, {q, decay, added, v, seen.values, seen.sequences, seen.pages,
                                               p.concat(p.mul(decay, k), p.scale(added, -1))});
  const Value gate = p.map(OpKind::Sigmoid, narrow("ssm_g", {}));
  return project(m, "attn_output", m.config.width, p.mul(p.join_heads(rms_norm(m, "ssm_norm", y)), gate));
}

Value short_convolution(Recorder& m, Value x) {
  ProgramBuilder& p = m.p;
  const int d = width_of(m, x);
  auto part = [&](int index) { return project_rows(m, "shortconv.in_proj", {index * d, d, 3 * d}, x); };
  const Value b = part(0), c = part(1), u = part(2);
  const Value y = convolution(m, "shortconv.conv", m.hyper.count("shortconv.l_cache"), p.mul(b, u));
  return project(m, "shortconv.out_proj", d, p.mul(c, y));
}

}  // namespace gimbal::arch
