// DeepSeek-V2 and -V3, and models built like them: keys and values of all heads are products of one short
// vector per position, and the cache holds only that vector; experts in groups, and shared ones for every
// row. DeepSeek-AI, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model",
// 2024; "DeepSeek-V3 Technical Report", 2024. Mistral Small 4 (mistral4): Mistral AI, 2026. Dense models with
// such attention: MiniCPM3, whose sums are scaled as in MiniCPM, and PLM, which squares ReLU; Hu et al.,
// "MiniCPM: Unveiling the Potential of Small Language Models", 2024; Deng et al., "PLM: Efficient Peripheral
// Language Models Hardware-Co-Designed for Ubiquitous Computing", 2025.
#include <algorithm>
#include <cmath>

#include "base/fixed_math.h"
#include "base/format.h"
#include "model/arch/blocks.h"
#include "model/arch/nextn.h"
#include "model/arch/recurrent.h"

namespace gimbal::arch {
namespace {

// Multi-head latent attention. A head's key is `plain` values that are not rotated, then `turned` that are,
// which all heads share; its value has `value` values. The cache holds `latent` values per position;
// matrices compute the plain keys and the values from them.
struct Latent {
  int heads, latent, plain, turned, value;
  RopePairs pairs;
  float scale;
  double growth;  // of queries with the logarithm of their position
  int growth_length;
};

Latent read_latent(Recorder& m) {
  const Config& c = m.config;
  Hyperparameters& h = m.hyper;
  Latent a{};
  a.heads = c.heads, a.turned = c.rotated, a.pairs = RopePairs::Adjacent;
  a.latent = h.count("attention.kv_lora_rank");
  // In the newer form of files, key_length is that of the cached vector.
  const int key = h.has("attention.key_length_mla") ? h.count("attention.key_length_mla") : c.head_dim;
  a.value = h.has("attention.value_length_mla") ? h.count("attention.value_length_mla") : c.value_dim;
  a.plain = key - a.turned;
  if (a.plain < 1)
    h.fail(Code::Malformed, c.arch + ": heads of " + std::to_string(key) + " values, of which " +
                                std::to_string(a.turned) + " are rotated, leave none unrotated");
  bounded(m, "attention heads and their lengths",
          int64_t(a.heads) * (std::max(key, a.latent + a.turned) + int64_t(a.value)));
  // YaRN's magnitude applies to the whole score here, not only to the rotated part. Without the key it
  // applies to that part only, as in DeepSeek's code (mscale_all_dim); docs/models.md describes llama.cpp's
  // behaviour.
  double magnitude = 1;
  if (h.has("rope.scaling.yarn_log_multiplier"))
    magnitude += h.number("rope.scaling.yarn_log_multiplier", {}, 0) *
                 fixed::log(h.number("rope.scaling.factor", {}, 1));
  a.scale = float(magnitude * magnitude / std::sqrt(double(key)));
  a.growth = h.number("attention.temperature_scale", 0);
  a.growth_length = a.growth != 0 ? h.count("attention.temperature_length") : 1;
  return a;
}

Value angles_of(Recorder& m) {
  RopeSettings s{.rotated = m.config.rotated, .base = m.config.rope_base};
  if (m.hyper.has("rope.scaling.yarn_log_multiplier")) s.magnitude = 1;
  return m.rope(s);
}

// The short vector that all queries of a row are products of; nullopt: they are products of x.
std::optional<Value> short_query(Recorder& m, Value x) {
  const int rank = m.hyper.count("attention.q_lora_rank", 0, 0);
  if (!rank || !m.has("attn_q_a.weight")) return {};
  return rms_norm(m, "attn_q_a_norm", project(m, "attn_q_a", rank, x));
}

// [plain + turned, heads, R], the turned values last and turned, unless there are no angles.
Value queries(Recorder& m, const Latent& a, std::optional<Value> angles, Value x, std::optional<Value> from) {
  x = project(m, from ? "attn_q_b" : "attn_q", a.heads * (a.plain + a.turned), from.value_or(x));
  Value q = m.p.split_heads(x, a.plain + a.turned);
  if (angles) q = m.p.rope(q, *angles, a.pairs, a.plain);
  return a.growth != 0 ? sharpened(m, q, a.growth, a.growth_length) : q;
}

// Queries are multiplied into the latent space, where one key serves all heads.
Value attend_latent(Recorder& m, const Latent& a, Value q, Value latent, Value turned,
                    std::optional<Value> added) {
  ProgramBuilder& p = m.p;
  // Without routes head h takes matrix h.
  q = p.concat(m.expert_product("attn_k_b", a.latent, a.heads, p.slice(q, 0, a.plain), {}),
               p.slice(q, a.plain, a.turned));
  const Value shared = p.split_heads(latent, a.latent);
  Attention attention{a.heads, 1, a.latent + a.turned, a.latent, a.scale};
  attention.added = added;
  const Value y = attend(m, attention, {q, p.concat(shared, turned), shared});
  return p.join_heads(m.expert_product("attn_v_b", a.value, a.heads, p.split_heads(y, a.latent), {}));
}

// Computes and caches the keys and values of every head.
Value attend_plain(Recorder& m, const Latent& a, Value q, Value latent, Value turned,
                   std::optional<Value> added) {
  ProgramBuilder& p = m.p;
  const Value both =
      p.split_heads(project(m, "attn_kv_b", a.heads * (a.plain + a.value), latent), a.plain + a.value);
  Attention attention{a.heads, a.heads, a.plain + a.turned, a.value, a.scale};
  attention.added = added;
  return attend(m, attention,
                {q, p.concat(p.slice(both, 0, a.plain), turned), p.slice(both, a.plain, a.value)});
}

// `query`: short_query(); `added`: to the scores of positions, as by an indexer.
Value attention_block(Recorder& m, const Latent& a, std::optional<Value> angles, Value x,
                      std::optional<Value> query, std::optional<Value> added) {
  ProgramBuilder& p = m.p;
  const Value q = queries(m, a, angles, x, query);
  const Value all = project(m, "attn_kv_a_mqa", a.latent + a.turned, x);
  const Value latent = rms_norm(m, "attn_kv_a_norm", p.slice(all, 0, a.latent));
  Value turned = p.split_heads(p.slice(all, a.latent, a.turned), a.turned);
  if (angles) turned = p.rope(turned, *angles, a.pairs);
  const Value y = m.has("attn_kv_b.weight") ? attend_plain(m, a, q, latent, turned, added)
                                            : attend_latent(m, a, q, latent, turned, added);
  return project(m, "attn_output", m.config.width, y);
}

Value attention_block(Recorder& m, const Latent& a, std::optional<Value> angles, Value x) {
  return attention_block(m, a, angles, x, short_query(m, x), {});
}

struct Deepseek2Layers {
  Latent attention;
  Value angles;
  SparseLayers feed_forward;
};

Deepseek2Layers read_deepseek2_layers(Recorder& m, Gating usual = Gating::Softmax) {
  return {read_latent(m), angles_of(m), read_sparse(m, {.gating = usual, .normalised = false})};
}

// `choose`: the positions to attend to, from the normed input and short_query() of it.
template <class Choose>
Value layer(Recorder& m, const Deepseek2Layers& l, int i, Value x, Choose&& choose) {
  ProgramBuilder& p = m.p;
  const Value y = rms_norm(m, "attn_norm", x);
  const std::optional<Value> query = short_query(m, y);
  x = p.add(x, attention_block(m, l.attention, l.angles, y, query, choose(y, query)));
  return p.add(x, sparse_feed_forward(m, l.feed_forward, i, rms_norm(m, "ffn_norm", x)));
}

Value layer(Recorder& m, const Deepseek2Layers& l, int i, Value x) {
  return layer(m, l, i, x, [](Value, const auto&) { return std::optional<Value>(); });
}

void record_deepseek2(Recorder& m) {
  const Deepseek2Layers l = read_deepseek2_layers(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    x = layer(m, l, i, x);
  }
  logits_and_states(m, x);
}

// The indexer of DeepSeek-V3.2 and GLM-5: small heads whose keys lie in a cache of their own rank the
// positions, and a row attends to the first `chosen` of them. In a context that is no longer these are all,
// and nothing is computed. DeepSeek-AI, "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models",
// 2025; GLM-5 Team, "GLM-5: from Vibe Coding to Agentic Engineering", 2026. Both multiply queries and keys by
// a Hadamard matrix, for keys in 8 bits; the products are the same without.
struct Indexer {
  int chosen, heads, head_dim;
  RopePairs pairs;
  bool used;  // the context is longer
};

Indexer read_indexer(Recorder& m, RopePairs pairs) {
  Hyperparameters& h = m.hyper;
  const int chosen = h.count("attention.indexer.top_k");
  Indexer x{chosen, h.count("attention.indexer.head_count"), h.count("attention.indexer.key_length"), pairs,
            m.options.context > chosen};
  bounded(m, "attention.indexer.head_count and key_length", int64_t(x.heads) * x.head_dim);
  if (x.head_dim < m.config.rotated)
    h.fail(Code::Malformed, format("{}: indexer heads of {} values, of which {} are rotated", m.config.arch,
                                   x.head_dim, m.config.rotated));
  return x;
}

// Of the layer's normed input y and its short_query().
Value chosen_positions(Recorder& m, const Indexer& x, Value angles, Value y, Value query) {
  constexpr float kEpsilon = 1e-6f;
  ProgramBuilder& p = m.p;
  auto turned = [&](Value heads) { return p.rope(heads, angles, x.pairs); };
  const Value q =
      turned(p.split_heads(project(m, "indexer.attn_q_b", x.heads * x.head_dim, query), x.head_dim));
  const Value one =
      p.norm(project(m, "indexer.attn_k", x.head_dim, y), NormKind::Layer, kEpsilon,
             m.vector("indexer.k_norm.weight", x.head_dim), m.vector("indexer.k_norm.bias", x.head_dim));
  const size_t pool = m.paged();
  const Value keys = m.plain_keys("indexer keys", pool, x.head_dim), positions = m.positions(),
              sequences = m.sequences(), pages = m.pages(pool);
  p.cache_write(keys, true, turned(p.split_heads(one, x.head_dim)), positions, sequences, pages);
  // Both models divide the weights by a root of sizes, which changes no order.
  const Value weights = project(m, "indexer.proj", x.heads, y);
  const int all = (m.options.context + kPagePositions - 1) / kPagePositions * kPagePositions;
  return p.chosen_positions(q, keys, weights, positions, sequences, pages, all, x.chosen);
}

// In GLM-5 `attention.indexer.types` is 0 for layers that take the choice of the layer before them.
void record_indexed(Recorder& m, Gating usual, RopePairs pairs) {
  const Indexer indexer = read_indexer(m, pairs);
  const Deepseek2Layers l = read_deepseek2_layers(m, usual);
  std::optional<Value> chosen;
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    const bool own =
        m.hyper.count_of("attention.indexer.types", i, m.has("indexer.attn_q_b.weight") ? 1 : 0) != 0;
    if (!indexer.used || !own)
      for (const char* part : {"indexer.k_norm.weight", "indexer.k_norm.bias", "indexer.proj.weight",
                               "indexer.attn_k.weight", "indexer.attn_q_b.weight"})
        m.leave_out(part);
    x = layer(m, l, i, x, [&](Value y, const std::optional<Value>& query) {
      if (!indexer.used) return chosen;
      if (own && query) chosen = chosen_positions(m, indexer, l.angles, y, *query);
      else if (own)
        m.hyper.fail(Code::Unsupported, m.config.arch + ": an indexer of a layer without 'attn_q_a.weight'");
      else if (!chosen)
        m.hyper.fail(Code::Malformed,
                     m.config.arch + ".attention.indexer.types: the first layer has no indexer");
      return chosen;
    });
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

// Kimi Linear: such attention, not rotated, in few layers, and delta nets in the others. Kimi Team, "Kimi
// Linear: An Expressive, Efficient Attention Architecture", 2025.
void record_kimi_linear(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Latent latent = read_latent(m);
  const SparseLayers layers = read_sparse(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    const Value y = rms_norm(m, "attn_norm", x);
    const bool recurrent = m.hyper.count_of("attention.head_count_kv", i) == 0;
    x = p.add(x, recurrent ? kimi_delta_net(m, y) : attention_block(m, latent, {}, y));
    x = p.add(x, sparse_feed_forward(m, layers, i, rms_norm(m, "ffn_norm", x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

void record_deepseek2_nextn(Recorder& m) {
  const Deepseek2Layers l = read_deepseek2_layers(m);
  const Nextn n = begin_nextn(m);
  end_nextn(m, n, layer(m, l, n.layer, n.x));
}

// Files have none of MiniCPM3's scales, nor the width of its values.
void record_minicpm3(Recorder& m) {
  ProgramBuilder& p = m.p;
  Latent a = read_latent(m);
  a.pairs = RopePairs::Halves;
  a.value = m.hyper.count("attention.value_length", m.config.width / m.config.heads);
  const Value angles = angles_of(m);
  const auto block = float(1.4 / std::sqrt(double(m.config.layers + m.config.left_out)));
  Value x = token_embedding(m, 12);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    x = p.add(x, p.scale(attention_block(m, a, angles, rms_norm(m, "attn_norm", x)), block));
    x = p.add(x, p.scale(glu(m, rms_norm(m, "ffn_norm", x)), block));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)), 256 / float(m.config.width));
}

void record_plm(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Latent a = read_latent(m);
  const Value angles = angles_of(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    x = p.add(x, attention_block(m, a, angles, rms_norm(m, "attn_norm", x)));
    x = p.add(x, mlp(m, rms_norm(m, "ffn_norm", x), OpKind::SquaredRelu));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

const ModelArch deepseek2_nextn{"deepseek2", record_deepseek2_nextn, configure_nextn};

}  // namespace

extern const ModelArch deepseek2, mistral4, deepseek32, glm_dsa, kimi_linear, minicpm3, plm;
const ModelArch deepseek2{"deepseek2", record_deepseek2, configure_without_nextn, false, &deepseek2_nextn};
const ModelArch mistral4{"mistral4", record_deepseek2, configure_without_nextn};
const ModelArch deepseek32{"deepseek32",
                           [](Recorder& m) { record_indexed(m, Gating::Softmax, RopePairs::Halves); },
                           configure_without_nextn};
const ModelArch glm_dsa{"glm-dsa",
                        [](Recorder& m) { record_indexed(m, Gating::Sigmoid, RopePairs::Adjacent); },
                        configure_without_nextn};
const ModelArch kimi_linear{"kimi-linear", record_kimi_linear};
const ModelArch minicpm3{"minicpm3", record_minicpm3};
const ModelArch plm{"plm", record_plm};

}  // namespace gimbal::arch
