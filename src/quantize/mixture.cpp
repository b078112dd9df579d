// The rules of mixtures. `more bits` of a mixture go to what hurts most: the output, the values of attention,
// the second matrix of feed-forward networks, and the first and last layers.
#include "quantize/mixture.h"

#include <algorithm>
#include <initializer_list>

#include "files/name_pattern.h"
#include "quantize/tensor_role.h"

namespace gimbal {
namespace {

using enum Mix;

bool among(Mix m, std::initializer_list<Mix> all) {
  return std::find(all.begin(), all.end(), m) != all.end();
}

// About a half of the layers: the first and the last eighth, and every third between.
bool is_favoured(int layer, int layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

// The rules' inputs from the model, and their counts of its tensors so far.
struct Counts {
  Mix mix;
  bool importance, falcon, tied = true;
  bool seventy;  // llama 70B: 8 heads share a value
  uint64_t experts, shared_heads;
  int layers, values = 0;
  int values_seen = 0, downs_seen = 0, gates_seen = 0, ups_seen = 0;

  // Of layers in turn, or by name where layers have experts.
  int layer(int& seen, std::string_view name) const {
    const int in_turn = seen++;
    return experts > 1 ? layer_of(name) : in_turn;
  }
};

DType of_output(const Counts& c, int64_t row, DType base) {
  if (c.mix == MXFP4_MOE || c.falcon || row % info(base).block) return DType::Q8_0;
  if (among(c.mix, {IQ2_XXS, IQ2_XS, IQ3_XXS, IQ1_S, IQ2_S, IQ2_M, IQ1_M})) return DType::Q5_K;
  return base == DType::Q8_0 ? base : DType::Q6_K;
}

DType of_embedding(Mix m, DType base) {
  if (among(m, {IQ2_XXS, IQ2_XS, IQ1_S, IQ1_M})) return DType::Q2_K;
  if (among(m, {IQ2_S, IQ2_M, IQ3_XXS})) return DType::IQ3_S;
  if (among(m, {TQ1_0, TQ2_0, Q2_0})) return DType::Q4_K;
  return base;
}

// Mixtures of about two bits and less.
DType in_smallest(Counts& c, TensorRole role, DType base) {
  const bool larger = among(c.mix, {IQ2_S, IQ2_M});
  switch (role) {
    case TensorRole::Value:
      c.values_seen++;
      if (c.shared_heads >= 4 || c.experts >= 4) return DType::Q4_K;
      return larger ? DType::IQ3_S : DType::Q2_K;
    case TensorRole::Key: return c.experts == 8 ? DType::Q4_K : base;
    case TensorRole::Down: {
      const bool first = c.downs_seen++ < c.layers / 8;
      return !first ? base : larger ? DType::IQ3_S : DType::Q2_K;
    }
    case TensorRole::AttentionOutput:
      if (c.experts == 8) return DType::Q5_K;
      if (among(c.mix, {IQ1_S, IQ1_M})) return DType::IQ2_XXS;
      return larger ? DType::IQ3_S : base;
    default: return base;
  }
}

DType of_value(Counts& c, DType base) {
  const bool shared = c.shared_heads >= 4;
  const int seen = c.values_seen++;
  DType type = base;
  switch (c.mix) {
    case Q2_K: type = shared ? DType::Q4_K : DType::Q3_K; break;
    case Q2_K_S: type = shared ? DType::Q4_K : base; break;
    case IQ3_XXS: type = shared ? DType::Q4_K : c.importance ? DType::IQ3_XXS : DType::IQ3_S; break;
    case IQ3_XS:
    case IQ3_S: type = shared ? DType::Q4_K : base; break;
    case IQ3_M: type = DType::Q4_K; break;
    case Q3_K_M: type = seen < 2 ? DType::Q5_K : DType::Q4_K; break;
    case Q3_K_L: type = DType::Q5_K; break;
    case IQ4_NL:
    case IQ4_XS: type = shared ? DType::Q5_K : base; break;
    case Q4_K_M:
    case Q5_K_M: type = is_favoured(seen, c.values) ? DType::Q6_K : base; break;
    case Q4_K_S: type = seen < 4 ? DType::Q5_K : base; break;
    default: break;
  }
  if (c.seventy && (type == DType::Q3_K || type == DType::Q4_K)) type = DType::Q5_K;
  return c.experts == 8 ? DType::Q8_0 : type;
}

DType of_down(Counts& c, std::string_view name, DType base) {
  const int layer = c.layer(c.downs_seen, name), layers = c.layers;
  const bool first_eighth = layer < layers / 8, favoured = is_favoured(layer, layers);
  switch (c.mix) {
    case Q2_K: return DType::Q3_K;
    case Q2_K_S: return first_eighth ? DType::Q4_K : base;
    case IQ3_XXS: return c.importance ? base : first_eighth ? DType::Q4_K : DType::Q3_K;
    case Q3_K_M:
      if (layer < layers / 16) return DType::Q5_K;
      return !c.falcon || favoured ? DType::Q4_K : DType::Q3_K;
    case IQ3_M: return first_eighth || (c.experts == 8 && favoured) ? DType::Q4_K : base;
    case Q3_K_L: return c.falcon ? DType::Q4_K : DType::Q5_K;
    case Q4_K_M:
      if (!c.falcon) return favoured ? DType::Q6_K : base;
      return layer < layers / 16 ? DType::Q6_K : favoured ? DType::Q5_K : DType::Q4_K;
    case IQ4_NL:
    case IQ4_XS: return first_eighth && !c.importance ? DType::Q5_K : base;
    case Q5_K_M: return favoured ? DType::Q6_K : base;
    case Q4_K_S: return first_eighth && !c.falcon ? DType::Q5_K : base;
    case Q4_0: return first_eighth && c.importance ? DType::Q4_1 : base;
    case Q5_0: return first_eighth && c.importance ? DType::Q5_1 : base;
    default: return base;
  }
}

DType of_attention_output(const Counts& c, DType base) {
  if (c.falcon) return c.mix == Q3_K_L ? DType::Q4_K : base;
  if (c.experts == 8)
    return among(c.mix, {Q2_K, IQ3_XS, IQ3_XXS, Q3_K_S, Q3_K_M, IQ4_NL, Q4_K_S, Q4_K_M, IQ3_S, IQ3_M, IQ4_XS})
               ? DType::Q5_K
               : base;
  switch (c.mix) {
    case Q2_K: return DType::Q3_K;
    case IQ3_XXS: return DType::IQ3_S;
    case Q3_K_M:
    case IQ3_M: return DType::Q4_K;
    case Q3_K_L: return DType::Q5_K;
    default: return base;
  }
}

DType of_query_or_key(const Counts& c, bool key, DType base) {
  if (key && c.experts == 8) return DType::Q8_0;
  return c.mix == IQ3_XS ? DType::IQ3_XXS : c.mix == IQ3_XXS ? DType::IQ2_S : base;
}

DType by_mixture(Counts& c, const StoredTensor& t, const QuantizeRules& rules) {
  const DType base = rules.mixture.format;
  const TensorRole role = role_of(t.name);
  if (role == TensorRole::Output || (c.tied && role == TensorRole::Embedding))
    return rules.output.value_or(of_output(c, t.dim[0], base));
  if (c.mix == MXFP4_MOE) return t.dim[2] > 1 ? DType::MXFP4 : DType::Q8_0;
  if (role == TensorRole::Embedding) return rules.embedding.value_or(of_embedding(c.mix, base));
  if (among(c.mix, {IQ2_XXS, IQ2_XS, IQ1_S, IQ2_S, IQ2_M, IQ1_M})) return in_smallest(c, role, base);
  switch (role) {
    case TensorRole::Value: return of_value(c, base);
    case TensorRole::Key:
    case TensorRole::Query: return of_query_or_key(c, role == TensorRole::Key, base);
    case TensorRole::Down: return of_down(c, t.name, base);
    case TensorRole::AttentionOutput: return of_attention_output(c, base);
    case TensorRole::Gate:
    case TensorRole::Up: {
      const int layer = c.layer(role == TensorRole::Gate ? c.gates_seen : c.ups_seen, t.name);
      const bool middle = layer >= c.layers / 8 && layer < 7 * c.layers / 8;
      return c.mix == IQ3_XS && middle ? DType::IQ3_XXS : base;
    }
    default: return base;
  }
}

// A format with shorter blocks for rows that are no multiple of the wanted one's.
DType with_shorter_blocks(DType wanted) {
  switch (wanted) {
    case DType::IQ1_S:
    case DType::IQ1_M:
    case DType::IQ2_XXS:
    case DType::IQ2_XS:
    case DType::IQ2_S:
    case DType::IQ3_XXS:
    case DType::IQ3_S:
    case DType::IQ4_XS: return DType::IQ4_NL;
    case DType::Q2_0:
    case DType::Q2_K:
    case DType::Q3_K:
    case DType::TQ1_0:
    case DType::TQ2_0: return DType::Q4_0;
    case DType::Q4_K: return DType::Q5_0;
    case DType::Q5_K: return DType::Q5_1;
    case DType::Q6_K: return DType::Q8_0;
    default: return wanted;
  }
}

bool needs_importance(const StoredTensor& t, DType type, Mix m) {
  const TensorRole role = role_of(t.name);
  if (role == TensorRole::Embedding || role == TensorRole::Output) return false;
  switch (type) {
    case DType::IQ3_XXS:
    case DType::IQ2_XXS:
    case DType::IQ2_XS:
    case DType::IQ2_S:
    case DType::IQ1_M:
    case DType::IQ1_S: return true;
    default: return type == DType::Q2_K && m == Q2_K_S;
  }
}

Counts counts_of(const ModelSource& model, const QuantizeRules& rules, bool importance) {
  const Metadata& m = model.metadata();
  const std::string arch(m.string("general.architecture").value_or(""));
  const auto number = [&](const char* key) { return m.unsigned_integer(arch + key).value_or(0); };
  // The heads of the first layer, where layers differ.
  const auto heads = [&](const char* key) {
    const MetadataArray* all = m.array(arch + key);
    if (!all) return number(key);
    const auto first = all->first(1).integers();
    return uint64_t(first.empty() || first[0] < 0 ? 0 : first[0]);
  };
  Counts c{};
  c.mix = rules.mixture.id, c.importance = importance, c.falcon = arch == "falcon", c.tied = true;
  c.experts = number(".expert_count"), c.layers = int(std::min<uint64_t>(number(".block_count"), 1 << 20));
  const uint64_t all = heads(".attention.head_count");
  const uint64_t values =
      m.contains(arch + ".attention.head_count_kv") ? heads(".attention.head_count_kv") : all;
  c.shared_heads = values ? all / values : 0;
  c.seventy = arch == "llama" && c.layers == 80 && all != values;
  for (const StoredTensor& t : model.tensors()) {
    c.values += role_of(t.name) == TensorRole::Value;
    if (role_of(t.name) == TensorRole::Output) c.tied = false;
  }
  return c;
}

}  // namespace

Result<std::vector<TensorFormat>> formats_of(const ModelSource& model, const QuantizeRules& rules,
                                             bool with_importance) {
  auto named = formats_by_name(model.tensors(), rules.names);
  if (!named) return named.error();
  // Layers in turn are counted in this order, whatever the order of the file.
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& t : model.tensors()) order.push_back(&t);
  std::sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    const int la = layer_of(a->name), lb = layer_of(b->name);
    return la != lb ? la < lb : a->name < b->name;
  });
  Counts counts = counts_of(model, rules, with_importance);
  std::vector<TensorFormat> all(model.tensors().size());
  for (const StoredTensor* t : order) {
    TensorFormat& f = all[t->index];
    f.format = t->type;
    if (!is_quantizable(*t)) continue;
    const TensorRole role = role_of(t->name);
    const std::optional<DType> by_name = (*named)[t->index];
    const bool follows_embedding = t->name == "token_embd.weight" || !by_name;
    DType type = rules.mixture.format;
    if (rules.embedding && role == TensorRole::Embedding && follows_embedding) type = *rules.embedding;
    else if (rules.output && role == TensorRole::Output) type = *rules.output;
    else if (info(type).block > 1) {
      if (by_name) type = *by_name;
      else if (!rules.pure) type = by_mixture(counts, *t, rules);
    }
    if (t->dim[0] % info(type).block) {
      f.substituted = true;
      type = with_shorter_blocks(type);
      if (t->dim[0] % info(type).block) type = DType::F16;
    }
    f.format = type, f.quantized = type != t->type,
    f.needs_importance = f.quantized && needs_importance(*t, type, counts.mix);
  }
  return all;
}

Result<std::vector<std::optional<DType>>> formats_by_name(const TensorTable& tensors,
                                                          const std::vector<FormatOfNames>& rules) {
  std::vector<std::optional<DType>> all(tensors.size());
  for (const FormatOfNames& rule : rules) {
    auto pattern = NamePattern::compile(rule.pattern);
    if (!pattern) return pattern.error();
    for (const StoredTensor& t : tensors)
      if (!all[t.index] && pattern->found_in(std::string(t.name))) all[t.index] = rule.format;
  }
  return all;
}

}  // namespace gimbal
