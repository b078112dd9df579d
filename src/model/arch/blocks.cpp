#include "model/arch/blocks.h"

#include <climits>
#include <cstring>

#include "base/fixed_math.h"
#include "base/format.h"

namespace gimbal::arch {
namespace {

constexpr float kSiluDepth = 0.2785f;

std::optional<Value> bias_of(Recorder& m, const std::string& name, int size, Bias bias) {
  if (bias == Bias::Needed) return m.vector(name + ".bias", size);
  return m.optional_vector(name + ".bias", size);
}

Value normed(Recorder& m, NormKind kind, const std::string& name, Value x, Bias needed) {
  const int d = width_of(m, x);
  const Value weight = m.vector(name + ".weight", d);
  const auto bias = bias_of(m, name, d, needed);
  if (kind == NormKind::Rms && !bias) return m.p.rms_norm(x, weight, m.config.norm_epsilon);
  return m.p.norm(x, kind, m.config.norm_epsilon, weight, bias);
}

}  // namespace

int bounded(Recorder& m, const std::string& what, int64_t n) {
  if (n <= kMaxCount) return int(n);
  m.hyper.fail(Code::Malformed,
               m.config.arch + ": " + what + " make " + std::to_string(n) + ", more than any model has");
  return 1;
}

Value rms_norm(Recorder& m, const std::string& name, Value x) {
  return normed(m, NormKind::Rms, name, x, Bias::Optional);
}
Value layer_norm(Recorder& m, const std::string& name, Value x, Bias bias) {
  return normed(m, NormKind::Layer, name, x, bias);
}
Value layer_norm_by_head(Recorder& m, const std::string& name, Value x) {
  const Value weight = m.table(name + ".weight", width_of(m, x), int(m.p.shape(x).dim[1]));
  return m.p.norm(x, NormKind::Layer, m.config.norm_epsilon, weight);
}

Value project(Recorder& m, const std::string& name, int rows, Value x, Bias bias) {
  if (auto s = m.optional_number(name + ".scale")) return m.p.scale(m.product(name, 0, rows, rows, x), *s);
  return m.product(name, 0, rows, rows, x, bias_of(m, name, rows, bias));
}

Attention attention(const Recorder& m) {
  const Config& c = m.config;
  return {c.heads, c.kv_heads, c.head_dim, c.value_dim, float(1 / __builtin_sqrt(double(c.head_dim)))};
}

Heads project_heads(Recorder& m, const Attention& a, Value x, Bias bias) {
  const int q = a.heads * a.head_dim, k = a.kv_heads * a.head_dim, v = a.kv_heads * a.value_dim;
  auto split = [&](Value q, Value k, Value v) -> Heads {
    return {m.p.split_heads(q, a.head_dim), m.p.split_heads(k, a.head_dim), m.p.split_heads(v, a.value_dim)};
  };
  if (!m.has("attn_qkv.weight")) {
    const Value all_q = project(m, "attn_q", q, x, bias), all_k = project(m, "attn_k", k, x, bias);
    return split(all_q, all_k, project(m, "attn_v", v, x, bias));
  }
  if (m.has("attn_qkv.bias") || bias == Bias::Needed) {
    const Value all = project(m, "attn_qkv", q + k + v, x, Bias::Needed);
    return split(m.p.slice(all, 0, q), m.p.slice(all, q, k), m.p.slice(all, q + k, v));
  }
  auto rows = [&](int first, int n) { return m.product("attn_qkv", first, n, q + k + v, x); };
  const Value all_q = rows(0, q), all_k = rows(q, k);
  return split(all_q, all_k, rows(q + k, v));
}

Value rope_table(Recorder& m, RopeSections sections) {
  return m.rope({.rotated = m.config.rotated, .base = m.config.rope_base, .sections = sections});
}

Value window_rope_table(Recorder& m) {
  return m.rope({.rotated = m.config.rotated,
                 .base = m.hyper.number("rope.freq_base_swa", 10000, 0),
                 .scaled = false,
                 .divided = false},
                "rope of windows");
}

bool has_window(Recorder& m, int layer, int period, FarLayer far) {
  const char* key = "attention.sliding_window_pattern";
  if (m.hyper.is_list(key)) return m.hyper.flag_of(key, layer);
  period = m.hyper.count(key, period, 0);
  return period == 0 || layer % period != (far == FarLayer::Last ? period - 1 : 0);
}

int window_size(Recorder& m, std::optional<int> otherwise) {
  const char* key = "attention.sliding_window";
  const int n = m.hyper.count(key, otherwise), most = m.config.context;
  if (m.hyper.has(key) && n > most)
    m.hyper.fail(Code::Malformed, m.config.arch + "." + key + " is " + std::to_string(n) +
                                      ", more than the " + std::to_string(most) +
                                      " positions of the context");
  return n;
}

Value sharpened(Recorder& m, Value x, double growth, int length, int ahead) {
  const Value factors = m.row_input("sharpness", DType::F32, 1, [=](const StepRow& r, std::byte* to) {
    const auto factor = float(1 + growth * fixed::log(1.0 + (int64_t(r.position) + ahead) / length));
    std::memcpy(to, &factor, sizeof factor);
  });
  return m.p.split_heads(m.p.mul(m.p.join_heads(x), factors), width_of(m, x));
}

Heads clamped(Recorder& m, const Heads& h) {
  const auto limit = float(m.hyper.number("attention.clamp_kqv", 0, 0));
  auto one = [&](Value v) { return limit > 0 ? m.p.map(OpKind::Clamp, v, limit) : v; };
  const Value q = one(h.q), k = one(h.k);
  return {q, k, one(h.v)};
}

Heads rotated(Recorder& m, Heads h, Value table, RopePairs pairs) {
  h.q = m.p.rope(h.q, table, pairs);
  h.k = m.p.rope(h.k, table, pairs);
  return h;
}

// For the cache, or back: the matrix is its own inverse. Values lose less in runs of 64 (docs/quality.md).
static Value turned(Recorder& m, Value x, int longest_run) {
  const int width = width_of(m, x);
  return m.options.rotate ? m.p.hadamard(x, std::min(width & -width, longest_run)) : x;
}
constexpr int kWholeHead = INT_MAX, kRunOfValues = 64;

void write_heads(Recorder& m, const Remembered& r, const Heads& h, StepRows of) {
  const Value positions = m.positions(of), sequences = m.sequences(of), pages = m.pages(r.pool);
  m.p.cache_write(r.keys, true, turned(m, h.k, kWholeHead), positions, sequences, pages);
  m.p.cache_write(r.values, false, turned(m, h.v, kRunOfValues), positions, sequences, pages);
}

Remembered remember(Recorder& m, const Attention& a, const Heads& h) {
  const size_t pool = m.paged(a.window);
  const Value keys = m.keys("keys", pool, a.head_dim, a.kv_heads);
  const Remembered r{pool, keys, m.values("values", pool, a.value_dim, a.kv_heads)};
  write_heads(m, r, h);
  return r;
}

Value attend_to(Recorder& m, const Attention& a, const Remembered& r, Value q, StepRows of) {
  std::optional<Value> seen = a.seen;
  if (!seen && !m.hyper.flag("attention.causal", true)) {
    if (a.window)
      m.hyper.fail(Code::Unsupported, m.config.arch + ".attention.causal is false, and layers have a window");
    seen = m.seen_both(-1, -1);
  }
  const Value y = m.p.attention(
      turned(m, q, kWholeHead), r.keys, r.values, m.positions(of), m.sequences(of), m.pages(r.pool),
      {a.scale, seen ? 0 : a.window, a.cap, a.alibi, seen, a.sinks, a.biases, a.distances, a.added});
  return m.p.join_heads(turned(m, y, kRunOfValues));
}

Value attend(Recorder& m, const Attention& a, const Heads& h) {
  return attend_to(m, a, remember(m, a, h), h.q);
}

int ff_width(Recorder& m, int layer) { return m.hyper.count_of("feed_forward_length", layer, {}, 1); }

Value activated(Recorder& m, OpKind activation, float limit, Value gate, Value up) {
  ProgramBuilder& p = m.p;
  if (activation == OpKind::Relu) return p.mul(p.map(activation, gate), up);
  if (activation != OpKind::SwiGlu || limit == 0) return p.record(activation, {gate, up}, {{limit}, {}});
  // silu is nowhere below -0.2785, so that a limit on both sides is one from above.
  if (limit < kSiluDepth)
    m.hyper.fail(Code::Unsupported,
                 format("{}: activations limited to {}; this version computes limits of at least {}",
                        m.config.arch, limit, kSiluDepth));
  return p.mul(p.map(OpKind::Clamp, p.map(OpKind::Silu, gate), limit), p.map(OpKind::Clamp, up, limit));
}

Value glu(Recorder& m, Value x, OpKind activation, const std::string& suffix, int width, float limit) {
  const int d = width_of(m, x), f = width ? width : ff_width(m, m.current_layer());
  const std::string gate_name = "ffn_gate" + suffix, up_name = "ffn_up" + suffix;
  auto half = [&](int first) { return m.product(up_name, first, f, 2 * f, x); };
  const bool fused = !m.has(gate_name + ".weight") && m.has(up_name + ".weight");
  const Value gate = fused ? half(0) : project(m, gate_name, f, x);
  const Value up = fused ? half(f) : project(m, up_name, f, x);
  return project(m, "ffn_down" + suffix, d, activated(m, activation, limit, gate, up));
}

Value mlp(Recorder& m, Value x, OpKind activation, Bias bias) {
  const Value up = project(m, "ffn_up", ff_width(m, m.current_layer()), x, bias);
  return project(m, "ffn_down", width_of(m, x), m.p.map(activation, up), bias);
}

Experts read_experts(Recorder& m, UsualRouting usual, std::optional<int> layer) {
  Hyperparameters& h = m.hyper;
  auto of_layer = [&](const char* key) { return layer ? h.count_of(key, *layer, {}, 1) : h.count(key); };
  Experts e{};
  e.count = h.count("expert_count");
  e.width = h.has("expert_feed_forward_length") ? of_layer("expert_feed_forward_length")
                                                : ff_width(m, layer.value_or(m.config.layers - 1));
  e.routing.k = of_layer("expert_used_count");
  if (e.routing.k > e.count)
    h.fail(Code::Malformed, m.config.arch + ".expert_used_count is " + std::to_string(e.routing.k) +
                                ", more than the " + std::to_string(e.count) + " experts there are");
  const int gating = h.count("expert_gating_func", usual.gating == Gating::Sigmoid ? 2 : 1);
  if (gating > 2)
    h.fail(Code::Unsupported, m.config.arch + ".expert_gating_func is " + std::to_string(gating) +
                                  "; this version computes 1 (softmax) and 2 (sigmoid)");
  e.routing.gating = gating == 2 ? Gating::Sigmoid : Gating::Softmax;
  e.routing.normalised = h.flag("expert_weights_norm", usual.normalised);
  e.routing.scale = float(h.number("expert_weights_scale", 0));
  if (const int groups = h.count("expert_group_count", 1, 0); groups > 1) {
    e.routing.groups = groups;
    e.routing.groups_used = h.count("expert_group_used_count");
    const int used = e.routing.groups_used;
    if (e.count % groups || used > groups || e.routing.k > int64_t(used) * (e.count / groups))
      h.fail(Code::Malformed, m.config.arch + ": " + std::to_string(e.count) + " experts in " +
                                  std::to_string(groups) + " groups, of which " + std::to_string(used) +
                                  " are used for " + std::to_string(e.routing.k) +
                                  " experts: groups must be equally large, and those used large enough");
  }
  if (e.count > kMaxExperts || e.routing.k > kMaxChosen)
    h.fail(Code::Unsupported, m.config.arch + ": " + std::to_string(e.routing.k) + " of " +
                                  std::to_string(e.count) + " experts; this version computes at most " +
                                  std::to_string(kMaxChosen) + " of " + std::to_string(kMaxExperts));
  return e;
}

Value chosen_experts(Recorder& m, const Experts& e, Value x, std::optional<Value> given) {
  const Value scores = given ? *given : project(m, "ffn_gate_inp", e.count, x);
  return m.p.route(scores, e.routing, m.optional_vector("exp_probs_b.bias", e.count));
}

Value expert_outputs(Recorder& m, const Experts& e, Value x, Value routes, const std::string& suffix) {
  ProgramBuilder& p = m.p;
  const int d = width_of(m, x), f = e.width, n = e.count;
  auto product = [&](const std::string& part, int rows, Value y) {
    const std::string name = "ffn_" + part + suffix;
    std::optional<Value> bias;
    if (m.has(name + ".bias")) bias = m.table(name + ".bias", rows, n);
    return m.expert_product(name, rows, n, y, routes, bias);
  };
  auto hidden = [&] {
    if (!e.gated) return p.map(e.activation, product("up", f, x), e.limit);
    if (m.has("ffn_gate_up" + suffix + ".weight")) {
      const Value both = product("gate_up", 2 * f, x);
      const Value gate = p.slice(both, 0, f), up = p.slice(both, f, f);
      return activated(m, e.activation, e.limit, gate, up);
    }
    const Value gate = product("gate", f, x), up = product("up", f, x);
    return activated(m, e.activation, e.limit, gate, up);
  };
  return product("down", d, hidden());
}

Value mixture(Recorder& m, const Experts& e, Value x, std::optional<Value> given) {
  const Value routes = chosen_experts(m, e, x, given);
  const Value y = expert_outputs(m, e, x, routes);
  return m.p.combine(y, routes, m.optional_vector("ffn_down_exps.scale", e.count));
}

Value gated_shared_expert(Recorder& m, Value x) {
  const int width = m.hyper.has("expert_shared_feed_forward_length")
                        ? m.hyper.count("expert_shared_feed_forward_length")
                        : ff_width(m, m.current_layer());
  const Value gate = m.p.map(OpKind::Sigmoid, project(m, "ffn_gate_inp_shexp", 1, x));
  return m.p.mul(glu(m, x, OpKind::SwiGlu, "_shexp", width), gate);
}

Value token_embedding(Recorder& m, float scale) {
  const Value x = m.embedded(m.matrix("token_embd.weight", m.config.width, m.config.vocabulary));
  return scale == 1 ? x : m.p.scale(x, scale);
}

int deepstack_layers(Recorder& m) {
  const int n = m.hyper.count("n_deepstack_layers", 0, 0);
  if (n > m.config.layers)
    m.hyper.fail(Code::Malformed, format("{} deepstack layers of {} layers", n, m.config.layers));
  return n;
}

Value position_embedding(Recorder& m) {
  const int positions = m.config.context;
  if (m.options.context > positions)
    m.hyper.fail(Code::Usage, "a context of " + std::to_string(m.options.context) +
                                  " positions is more than the " + std::to_string(positions) +
                                  " that 'position_embd.weight' has rows for; use a smaller context");
  return m.p.embed(m.matrix("position_embd.weight", m.config.width, positions), m.positions());
}

Value wanted(Recorder& m, Value x) {
  m.no_layer();
  return m.p.select_rows(x, m.wanted_rows());
}

bool is_reranker(Recorder& m) { return m.hyper.count("pooling_type", 0, 0) == kRankPooling; }

Value ranking_head(Recorder& m, int numbers, Value x) {
  if (const int rows = m.rows("cls.output.weight"); rows != numbers)
    m.hyper.fail(Code::Unsupported,
                 format("a reranker whose tensor 'cls.output.weight' has {} rows; this version computes "
                        "those of {} with {}",
                        rows, m.config.arch, numbers));
  return project(m, "cls.output", numbers, x);
}

void logits(Recorder& m, Value x, float scale, float cap) {
  if (m.wants(Output::Hidden)) m.output(Output::Hidden, x);
  if (!m.wants(Output::Logits)) {
    for (const char* part :
         {"output.weight", "output.bias", "output.scale", "output.weight.lora_a", "output.weight.lora_b"})
      m.leave_out(part);
    return;
  }
  const std::string head = m.has("output.weight") ? "output" : "token_embd";
  Value y = project(m, head, m.config.vocabulary, x);
  if (scale != 1) y = m.p.scale(y, scale);
  if (cap != 0) y = m.p.map(OpKind::SoftCap, y, cap);
  m.output(Output::Logits, y);
}

}  // namespace gimbal::arch
