#include "huggingface/families.h"

#include <cmath>
#include <numbers>

#include "base/fixed_math.h"
#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

// Llama 3.1's rule: frequencies that turn slowly over the original context are divided by the factor, fast
// ones are not, and between both a ramp mixes them. As divisors, which files of GGUF have in a tensor.
std::vector<float> llama3_divisors(ModelConfig& rope, int64_t rotated, double base) {
  const double factor = rope.number({"factor"}), low = rope.number({"low_freq_factor"}, 1),
               high = rope.number({"high_freq_factor"}, 4),
               context = rope.number({"original_max_position_embeddings"}, 8192);
  std::vector<float> divisors;
  if (!(low < high) || !(factor > 0) || !(base > 0)) {
    rope.fail(Code::Malformed,
              "'rope_scaling': expected factors above 0, and low_freq_factor below high_freq_factor");
    return divisors;
  }
  for (int64_t i = 0; i < rotated / 2; i++) {
    const double frequency = fixed::pow(base, -2.0 * double(i) / double(rotated));
    const double turns = context * frequency / (2 * std::numbers::pi);
    if (turns > high) divisors.push_back(1);
    else if (turns < low) divisors.push_back(float(factor));
    else {
      const double smooth = (turns - low) / (high - low);
      divisors.push_back(float(1 / ((1 - smooth) / factor + smooth)));
    }
  }
  return divisors;
}

void add_longrope(ModelConfig& config, ModelConfig& rope, ArchKeys& k, ModelShape& shape) {
  const double context = double(config.count({"max_position_embeddings"}));
  const double original = config.number({"original_max_position_embeddings"},
                                        rope.number({"original_max_position_embeddings"}, 0));
  for (const auto& [name, tensor] : {std::pair{"long_factor", "rope_factors_long.weight"},
                                     {"short_factor", "rope_factors_short.weight"}}) {
    const auto factors = rope.numbers({name});
    if (int64_t(factors.size()) != shape.rotated / 2)
      rope.fail(Code::Malformed,
                format("'{}': expected {} numbers, one for each pair that is rotated, found {}", name,
                       shape.rotated / 2, factors.size()));
    shape.made[tensor].assign(factors.begin(), factors.end());
  }
  const double scale = original > 0 ? context / original : rope.number({"factor"}, 1);
  double magnitude =
      scale <= 1 ? 1 : std::sqrt(1 + fixed::log(scale) / fixed::log(original > 0 ? original : context));
  magnitude = rope.number({"attention_factor", "long_mscale"}, magnitude);
  k.f32("rope.scaling.attn_factor", magnitude);
}

void add_rope(ModelConfig& config, ArchKeys& k, ModelShape& shape) {
  ModelConfig rope = config.rope();
  const double base = rope.number({"rope_theta"}, config.number({"rope_theta", "rotary_emb_base"}, 10000));
  k.f32("rope.freq_base", base);
  const std::string type = rope.text({"rope_type", "type"}, "default");
  const auto original = rope.number({"original_max_position_embeddings"},
                                    config.number({"original_max_position_embeddings"}, 0));
  if (type == "llama3") {
    shape.made["rope_freqs.weight"] = llama3_divisors(rope, shape.rotated, base);
  } else if (type == "linear") {
    k.out.text(k.full("rope.scaling.type"), "linear");
    k.f32("rope.scaling.factor", rope.number({"factor"}));
  } else if (type == "yarn") {
    k.out.text(k.full("rope.scaling.type"), "yarn");
    k.f32("rope.scaling.factor", rope.number({"factor"}));
    if (rope.has({"beta_fast"})) k.f32("rope.scaling.yarn_beta_fast", rope.number({"beta_fast"}));
    if (rope.has({"beta_slow"})) k.f32("rope.scaling.yarn_beta_slow", rope.number({"beta_slow"}));
    // The magnitude is given as a whole; here it multiplies 1 + 0.1 ln(factor).
    if (rope.has({"attention_factor"}))
      k.f32("rope.scaling.attn_factor", rope.number({"attention_factor"}) /
                                            (1 + 0.1 * fixed::log(std::max(1.0, rope.number({"factor"})))));
    // One of them alone changes nothing.
    if (rope.has({"mscale"}) && rope.has({"mscale_all_dim"}))
      rope.fail(Code::Unsupported, "'mscale' and 'mscale_all_dim' of YaRN are not computed for this family");
  } else if (type == "longrope" || type == "su") {
    add_longrope(config, rope, k, shape);
  } else if (type != "default" && type != "dynamic" && type != "none") {
    rope.fail(Code::Unsupported, format("'rope_scaling': the type {} is not computed; those that are: "
                                        "default, dynamic (within the trained "
                                        "context), linear, llama3, longrope, yarn",
                                        gimbal::quoted(type)));
  }
  if (original > 0 && type != "llama3") k.u32("rope.scaling.original_context_length", int64_t(original));
  config.take_error(rope);
}

void add_experts(ModelConfig& config, ArchKeys& k) {
  const int64_t experts =
      config.count({"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}, 0);
  if (!experts) return;
  k.u32("expert_count", experts);
  k.u32("expert_used_count", config.count_for_all({"num_experts_per_tok", "num_experts_per_token",
                                                   "moe_top_k", "moe_topk", "moe_k"}));
  if (config.has({"moe_intermediate_size"}))
    k.u32("expert_feed_forward_length", config.count_for_all({"moe_intermediate_size"}));
}

}  // namespace

Result<ModelShape> add_config(ModelConfig& config, const Family& family, MetadataBuilder& out) {
  ArchKeys k{config, out, family.arch};
  ModelShape s;
  s.layers = config.count({"num_hidden_layers", "n_layer", "num_layers"});
  s.heads = config.count({"num_attention_heads", "n_head"});
  s.kv_heads = config.count({"num_key_value_heads"}, s.heads);
  const int64_t width = config.count({"hidden_size", "n_embd"});
  if (!s.heads || !s.kv_heads) config.fail(Code::Malformed, "a model without attention heads");
  const int64_t heads = std::max<int64_t>(1, s.heads);
  s.head_dim = config.count({"head_dim"}, width / heads);
  const double part = config.rope().number(
      {"partial_rotary_factor"}, config.number({"partial_rotary_factor", "rope_pct"}, family.rotated_part));
  s.rotated = int64_t(double(s.head_dim) * part);
  s.vocabulary = config.count({"vocab_size"}, 0);
  s.tied = config.flag({"tie_word_embeddings"}, false);
  out.text("general.architecture", family.arch);
  k.u32("block_count", s.layers);
  k.u32("context_length", config.count({"max_position_embeddings", "n_positions", "n_ctx"}));
  k.u32("embedding_length", width);
  k.u32("feed_forward_length", config.count({"intermediate_size", "n_inner"}));
  k.u32("attention.head_count", s.heads);
  k.u32("attention.head_count_kv", s.kv_heads);
  k.u32("attention.key_length", s.head_dim);
  k.u32("attention.value_length", s.head_dim);
  k.u32("rope.dimension_count", s.rotated);
  if (s.vocabulary) k.u32("vocab_size", s.vocabulary);
  if (config.has({"rms_norm_eps"}))
    k.f32("attention.layer_norm_rms_epsilon", config.number({"rms_norm_eps"}));
  else
    k.f32("attention.layer_norm_epsilon",
          config.number({"layer_norm_eps", "norm_epsilon", "layer_norm_epsilon", "norm_eps"}, 1e-5));
  const std::string activation = config.text({"hidden_activation", "hidden_act", "activation_function"});
  if (!activation.empty() &&
      (" " + std::string(family.activations) + " ").find(" " + activation + " ") == std::string::npos)
    config.fail(Code::Unsupported, format("'hidden_act': {} is not computed for this family; computed is {}",
                                          gimbal::quoted(activation), family.activations));
  if (const std::string method = config.quantization(); !method.empty() && method != "fp8")
    config.fail(Code::Unsupported,
                format("'quantization_config': weights by {} are not read", gimbal::quoted(method)),
                "Get the folder of the model in bf16, f16, f32 or fp8, or a quantized GGUF file.");
  add_experts(config, k);
  add_rope(config, k, s);
  if (family.more) family.more(k);
  if (config.error()) return *config.error();
  return s;
}

}  // namespace gimbal
