// Architectures that are made up here, and files for them: parts of tensors as weights, caches of several
// widths and windows, states, experts.
#pragma once
#include <cmath>
#include <cstring>

#include "model/arch/blocks.h"
#include "support/gguf_writer.h"
#include "support/placed.h"
#include "support/schedules.h"
#include "support/tiny_llama.h"

namespace gimbal::test {

constexpr int kWidth = 8, kHidden = 12, kVocabulary = 40;
using Numbers = std::vector<float>;

inline Numbers numbers(unsigned seed, size_t n) {
  std::mt19937 r(seed);
  Numbers all(n);
  for (float& x : all) x = float(int(r() % 2001) - 1000) / 1500;
  return all;
}

// A llama of two layers with weights in the form that a test wants: joined, or each on its own.
struct Form {
  bool joined_qkv = false, joined_ffn = false, extra_row = false, recurrent = false;
};

inline std::string model_file(const Form& form) {
  TinyLlama keys;
  keys.u32("block_count", 2), keys.u32("context_length", 1024);
  GgufWriter w;
  for (auto& [key, value] : keys.keys) w.raw(key, value.first, value.second);
  unsigned seed = 1;
  auto put = [&](const std::string& name, std::vector<uint64_t> dims, const Numbers& values) {
    std::string data;
    for (float x : values) data += le(x);
    w.tensor(name, dims, 0, data);
  };
  auto join = [](std::initializer_list<Numbers> parts) {
    Numbers all;
    for (const Numbers& p : parts) all.insert(all.end(), p.begin(), p.end());
    return all;
  };
  put("token_embd.weight", {kWidth, kVocabulary}, numbers(seed++, kWidth * kVocabulary));
  put("output_norm.weight", {kWidth}, numbers(seed++, kWidth));
  for (int layer = 0; layer < 2; layer++) {
    const std::string blk = "blk." + std::to_string(layer) + ".";
    const Numbers q = numbers(seed++, 64), k = numbers(seed++, 32), v = numbers(seed++, 32),
                  gate = numbers(seed++, kWidth * kHidden), up = numbers(seed++, kWidth * kHidden);
    put(blk + "attn_norm.weight", {kWidth}, numbers(seed++, kWidth));
    put(blk + "ffn_norm.weight", {kWidth}, numbers(seed++, kWidth));
    if (form.recurrent) {
      put(blk + "ssm_a", {2}, {-0.5f, -1.5f});
      put(blk + "ssm_conv1d.weight", {3, kWidth}, numbers(seed++, 3 * kWidth));
    }
    put(blk + "attn_output.weight", {kWidth, kWidth}, numbers(seed++, 64));
    put(blk + "ffn_down.weight", {kHidden, kWidth}, numbers(seed++, kWidth * kHidden));
    if (form.recurrent) {
      // no attention
    } else if (form.joined_qkv) {
      Numbers all = join({q, k, v});
      if (form.extra_row) all.resize(all.size() + kWidth);
      put(blk + "attn_qkv.weight", {kWidth, all.size() / kWidth}, all);
    } else {
      put(blk + "attn_q.weight", {kWidth, 8}, q);
      put(blk + "attn_k.weight", {kWidth, 4}, k);
      put(blk + "attn_v.weight", {kWidth, 4}, v);
    }
    if (form.joined_ffn) {
      put(blk + "ffn_exps.weight", {kWidth, kHidden, 2}, join({gate, up}));
    } else {
      put(blk + "ffn_gate.weight", {kWidth, kHidden}, gate);
      put(blk + "ffn_up.weight", {kWidth, kHidden}, up);
    }
  }
  return w.build();
}

// A decoder whose attention and weights are the test's.
struct Blocks {
  std::function<Value(Recorder&, Value h)> attention;
  bool joined_ffn = false;
};

inline void record_blocks(Recorder& m, const Blocks& b) {
  ProgramBuilder& p = m.p;
  auto norm = [&](Value x, const char* name) {
    return p.rms_norm(x, m.vector(name, kWidth), m.config.norm_epsilon);
  };
  const Value table = m.matrix("token_embd.weight", kWidth, kVocabulary);
  Value x = m.embedded(table);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Value a = b.attention(m, norm(x, "attn_norm.weight"));
    x = p.add(x, p.linear(m.matrix("attn_output.weight", kWidth, kWidth), a));
    const Value h = norm(x, "ffn_norm.weight");
    const Value gate = b.joined_ffn ? m.expert("ffn_exps.weight", kWidth, kHidden, 0, 2)
                                    : m.matrix("ffn_gate.weight", kWidth, kHidden),
                up = b.joined_ffn ? m.expert("ffn_exps.weight", kWidth, kHidden, 1, 2)
                                  : m.matrix("ffn_up.weight", kWidth, kHidden);
    x = p.add(x, p.linear(m.matrix("ffn_down.weight", kHidden, kWidth),
                          p.swiglu(p.linear(gate, h), p.linear(up, h))));
  }
  m.no_layer();
  x = norm(p.select_rows(x, m.wanted_rows()), "output_norm.weight");
  m.output(Output::Logits, p.linear(table, x));
  if (m.wants(Output::Hidden)) m.output(Output::Hidden, x);
}

struct Projected {
  Value q, k, v;
};
inline Projected projected(Recorder& m, Value h, bool joined) {
  ProgramBuilder& p = m.p;
  auto rows = [&](const char* name, int first, int n) {
    return p.linear(
        joined ? m.matrix_rows("attn_qkv.weight", kWidth, first, n, 16) : m.matrix(name, kWidth, n), h);
  };
  return {rows("attn_q.weight", 0, 8), rows("attn_k.weight", 8, 4), rows("attn_v.weight", 12, 4)};
}

inline Value self_attention(Recorder& m, const Projected& x, float scale) {
  arch::Attention a = arch::attention(m);
  a.scale = scale;
  const arch::Heads h{m.p.split_heads(x.q, a.head_dim), m.p.split_heads(x.k, a.head_dim),
                      m.p.split_heads(x.v, a.value_dim)};
  return arch::attend(m, a, arch::rotated(m, h, arch::rope_table(m), RopePairs::Adjacent));
}

inline const ModelArch kJoined{
    "joined", [](Recorder& m) {
      record_blocks(
          m, {[](Recorder& m, Value h) { return self_attention(m, projected(m, h, true), 0.5f); }, true});
    }};

// Two attentions a layer: one over everything with heads of 4, one over a window with a head of 8. `pool`:
// whether the second keeps its window only.
inline Value two_attentions(Recorder& m, Value h, bool window_only, int window = 20) {
  ProgramBuilder& p = m.p;
  const Value all = self_attention(m, projected(m, h, false), 0.5f);
  const size_t pool = m.paged(window_only ? window : 0);
  const Value keys = m.keys("wide_keys", pool, kWidth, 1), values = m.values("wide_values", pool, kWidth, 1);
  const Value x = p.split_heads(h, kWidth);
  p.cache_write(keys, true, x, m.positions(), m.sequences(), m.pages(pool));
  p.cache_write(values, false, x, m.positions(), m.sequences(), m.pages(pool));
  return p.add(all, p.join_heads(p.attention(x, keys, values, m.positions(), m.sequences(), m.pages(pool),
                                             {0.3f, window})));
}
inline const ModelArch kWindowed{
    "windowed",
    [](Recorder& m) { record_blocks(m, {[](Recorder& m, Value h) { return two_attentions(m, h, true); }}); }};
inline const ModelArch kUnbounded{
    "unbounded", [](Recorder& m) {
      record_blocks(m, {[](Recorder& m, Value h) { return two_attentions(m, h, false); }});
    }};

// A state of 16 places that every position overwrites one of, and all of which are looked at: what was there
// is gone. One row of a sequence a step, because writing is not ordered within one.
constexpr int kPlaces = 16;
inline const ModelArch kRing{
    "ring", [](Recorder& m) {
      record_blocks(
          m, {[](Recorder& m, Value h) {
            ProgramBuilder& p = m.p;
            auto number = [](std::byte* to, int32_t n) { std::memcpy(to, &n, 4); };
            const Value place = m.row_input(
                            "place", DType::I32, 0,
                            [=](const StepRow&r, std::byte*to) { number(to, r.position % kPlaces); }),
                        last = m.row_input("last", DType::I32, 0,
                                           [=](const StepRow&, std::byte*to) { number(to, kPlaces - 1); });
            const auto [q, k, v] = projected(m, h, false);
            const size_t pool = m.recurrent();
            const Value keys = m.keys("keys", pool, 4, 1), values = m.values("values", pool, 4, 1);
            p.cache_write(keys, true, p.split_heads(k, 4), place, m.sequences(), m.pages(pool));
            p.cache_write(values, false, p.split_heads(v, 4), place, m.sequences(), m.pages(pool));
            return p.join_heads(
                p.attention(p.split_heads(q, 4), keys, values, last, m.sequences(), m.pages(pool), {0.5f}));
          }});
    }};

// In place of attention a convolution, a scan, a delta rule and a gated rule; in place of the feed-forward
// layer, two experts.
inline const ModelArch kMixers{
    "mixers", [](Recorder& m) {
      ProgramBuilder& p = m.p;
      const Value table = m.matrix("token_embd.weight", kWidth, kVocabulary);
      Value x = m.embedded(table);
      for (int i = 0; i < m.config.layers && !m.failed(); i++) {
        m.layer(i);
        const size_t pool = m.recurrent();
        const Value sequences = m.sequences(), pages = m.pages(pool);
        auto state = [&](const char* name, int values) {
          return m.state(name, pool, Shape(DType::F32, {values}));
        };
        auto heads = [&](Value v, int first, int n) { return p.split_heads(p.slice(v, first, n), n); };
        Value h = p.rms_norm(x, m.vector("attn_norm.weight", kWidth), m.config.norm_epsilon);
        const Value mixed =
            p.map(OpKind::Silu, p.record(OpKind::ShortConv, {h, m.table("ssm_conv1d.weight", 3, kWidth),
                                                             state("taps", 2 * kWidth), sequences, pages}));
        const Value scanned = p.record(
            OpKind::SelectiveScan,
            {p.split_heads(mixed, 4), p.map(OpKind::Softplus, p.slice(h, 0, 2)), m.vector("ssm_a", 2),
             heads(h, 0, 6), heads(h, 2, 6), state("scan", 6 * kWidth), sequences, pages});
        const Value unit = p.norm(p.split_heads(mixed, 4), NormKind::Length, 1e-6f);
        const Value corrected = p.record(
            OpKind::DeltaRule, {unit, unit, p.split_heads(h, 4), p.map(OpKind::Sigmoid, p.slice(h, 4, 2)),
                                p.scale(p.map(OpKind::Softplus, p.slice(h, 6, 2)), -1),
                                state("delta", 4 * kWidth), sequences, pages});
        const Value kept = p.map(OpKind::Sigmoid, p.split_heads(h, 4));
        const Value gated =
            p.record(OpKind::GatedRule, {unit, kept, unit, p.split_heads(h, 4), state("gated", 4 * kWidth),
                                         sequences, pages, p.concat(p.scale(unit, -1), p.mul(unit, kept))});
        h = p.add(p.add(p.join_heads(scanned), p.join_heads(corrected)), p.join_heads(gated));
        x = p.add(x, p.linear(m.matrix("attn_output.weight", kWidth, kWidth), h));
        h = p.rms_norm(x, m.vector("ffn_norm.weight", kWidth), m.config.norm_epsilon);
        const Value routes = p.route(p.slice(h, 0, 2), {.k = 2, .normalised = true});
        const Value made =
            p.expert_linear(m.experts("ffn_exps.weight", kWidth, kHidden, 2), kHidden, h, routes);
        x = p.add(x, p.linear(m.matrix("ffn_down.weight", kHidden, kWidth),
                              p.map(OpKind::Silu, p.combine(made, routes))));
      }
      m.no_layer();
      x = p.rms_norm(p.select_rows(x, m.wanted_rows()), m.vector("output_norm.weight", kWidth),
                     m.config.norm_epsilon);
      m.output(Output::Logits, p.linear(table, x));
    }};
constexpr Form kMixersForm{.joined_ffn = true, .recurrent = true};

}  // namespace gimbal::test
