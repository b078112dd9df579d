// config.json as metadata: the keys and numbers of a GGUF file, from each name that families of transformers
// give them. The factors of a rotation are those of the publishers' own formulas, computed in Python.
#include <gtest/gtest.h>

#include <map>

#include "base/json.h"
#include "huggingface/families.h"

namespace gimbal::test {
namespace {

const Json kLlama = {{"model_type", "llama"},    {"hidden_size", 64},      {"intermediate_size", 128},
                     {"num_attention_heads", 4}, {"num_hidden_layers", 2}, {"max_position_embeddings", 2048},
                     {"vocab_size", 100},        {"rms_norm_eps", 1e-6}};

struct Made {
  ModelShape shape;
  std::map<std::string, double> numbers;  // without "llama." before them
  std::string rope_type, architecture, error, remedy;
  Code code = Code::Failed;
};

// The config with some values changed; null: without the value.
Made made(const Json& changes, const char* family = "llama", Json config = kLlama) {
  for (const auto& [key, value] : changes.items()) config[key] = value;
  ModelConfig c(parse_json(config.dump()), "'config.json'");  // as a file has them
  MetadataBuilder out("folder");
  const auto shape = add_config(c, *family_of(family), out);
  Made m;
  if (!shape) {
    m.error = shape.error().message, m.remedy = shape.error().remedy, m.code = shape.error().code;
    return m;
  }
  m.shape = *shape;
  m.architecture = out.metadata().string("general.architecture").value_or("");
  const std::string prefix = m.architecture + ".";
  m.rope_type = out.metadata().string(prefix + "rope.scaling.type").value_or("");
  for (const auto& [key, entry] : out.metadata())
    if (const auto number = out.metadata().number(key); number && key.starts_with(prefix))
      m.numbers[std::string(key.substr(prefix.size()))] = *number;
  return m;
}
Made rope(const Json& settings, Json more = Json::object()) {
  more["rope_scaling"] = settings;
  return made(more);
}

TEST(ConfigKeys, OfALlama) {
  const Made m = made(Json::object());
  EXPECT_EQ(m.error, "");
  EXPECT_EQ(m.architecture, "llama");
  const std::map<std::string, double> expected = {{"block_count", 2},
                                                  {"context_length", 2048},
                                                  {"embedding_length", 64},
                                                  {"feed_forward_length", 128},
                                                  {"attention.head_count", 4},
                                                  {"attention.head_count_kv", 4},
                                                  {"attention.key_length", 16},
                                                  {"attention.value_length", 16},
                                                  {"rope.dimension_count", 16},
                                                  {"vocab_size", 100},
                                                  {"attention.layer_norm_rms_epsilon", double(1e-6f)},
                                                  {"rope.freq_base", 10000}};
  EXPECT_EQ(m.numbers, expected);
  EXPECT_EQ(m.rope_type, "");
  EXPECT_FALSE(m.shape.tied);
  EXPECT_EQ(m.shape.made.size(), 0u);
  EXPECT_EQ(m.shape.vocabulary, 100);
  EXPECT_EQ(m.shape.layers * 100 + m.shape.heads * 10 + m.shape.kv_heads, 244);
}

// GPT-2's, GPT-NeoX's and other families' names of the same numbers.
TEST(ConfigKeys, OtherNames) {
  const Json names = {{"n_layer", 3},
                      {"n_head", 8},
                      {"n_embd", 96},
                      {"n_positions", 512},
                      {"n_inner", 200},
                      {"num_key_value_heads", 2},
                      {"norm_epsilon", 1e-4},
                      {"rope_theta", 5e5},
                      {"tie_word_embeddings", true},
                      {"head_dim", 24},
                      {"rms_norm_eps", nullptr}};
  Json config = names;
  const Made m = made(Json::object(), "llama", config);
  EXPECT_EQ(m.error, "");
  const std::map<std::string, double> expected = {
      {"block_count", 3},           {"context_length", 512},
      {"embedding_length", 96},     {"feed_forward_length", 200},
      {"attention.head_count", 8},  {"attention.head_count_kv", 2},
      {"attention.key_length", 24}, {"attention.value_length", 24},
      {"rope.dimension_count", 24}, {"attention.layer_norm_epsilon", double(1e-4f)},
      {"rope.freq_base", 500000}};
  EXPECT_EQ(m.numbers, expected);
  EXPECT_TRUE(m.shape.tied);
  for (const char* name : {"layer_norm_eps", "norm_epsilon", "layer_norm_epsilon", "norm_eps"})
    EXPECT_EQ(made({{"rms_norm_eps", nullptr}, {name, 0.25}}).numbers.at("attention.layer_norm_epsilon"),
              0.25);
  EXPECT_EQ(made({{"rms_norm_eps", nullptr}}).numbers.at("attention.layer_norm_epsilon"), double(1e-5f));
  EXPECT_EQ(made({{"rope_theta", nullptr}, {"rotary_emb_base", 3e4}}).numbers.at("rope.freq_base"), 30000);
  EXPECT_EQ(rope({{"rope_theta", 2e4}}, {{"rope_theta", 1e4}}).numbers.at("rope.freq_base"), 20000);
  EXPECT_EQ(made({{"num_hidden_layers", nullptr}, {"num_layers", 7}}).numbers.at("block_count"), 7);
  EXPECT_EQ(made({{"max_position_embeddings", nullptr}, {"n_ctx", 77}}).numbers.at("context_length"), 77);
}

TEST(ConfigKeys, ThePartOfAHeadThatIsRotated) {
  EXPECT_EQ(made({{"partial_rotary_factor", 0.5}}).shape.rotated, 8);
  EXPECT_EQ(made({{"rope_pct", 0.25}}).shape.rotated, 4);
  EXPECT_EQ(rope({{"partial_rotary_factor", 0.75}}, {{"partial_rotary_factor", 0.5}}).shape.rotated, 12);
  EXPECT_EQ(made({{"partial_rotary_factor", 0.34}}).numbers.at("rope.dimension_count"), 5);
}

TEST(ConfigKeys, Experts) {
  const Made m = made({{"num_local_experts", 8}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 48}});
  EXPECT_EQ(m.numbers.at("expert_count"), 8);
  EXPECT_EQ(m.numbers.at("expert_used_count"), 2);
  EXPECT_EQ(m.numbers.at("expert_feed_forward_length"), 48);
  EXPECT_EQ(made({{"num_local_experts", 8}, {"moe_k", 2}}).numbers.count("expert_feed_forward_length"), 0u);
  EXPECT_EQ(made({{"num_local_experts", 0}, {"num_experts_per_tok", 2}}).numbers.count("expert_used_count"),
            0u);
  EXPECT_NE(
      made({{"num_experts", 8}}).error.find("'num_experts_per_tok': expected a whole number, found nothing"),
      std::string::npos);
  EXPECT_NE(made({{"num_experts", 8}, {"moe_topk", {2, 3}}}).error.find("layers with different numbers"),
            std::string::npos);
}

TEST(ConfigKeys, ScaledRotations) {
  const Made linear = rope({{"type", "linear"}, {"factor", 4.0}});
  EXPECT_EQ(linear.rope_type, "linear");
  EXPECT_EQ(linear.numbers.at("rope.scaling.factor"), 4);
  EXPECT_EQ(linear.numbers.count("rope.scaling.original_context_length"), 0u);

  const Made yarn = rope({{"rope_type", "yarn"},
                          {"factor", 4.0},
                          {"beta_fast", 24},
                          {"beta_slow", 2},
                          {"original_max_position_embeddings", 512}});
  EXPECT_EQ(yarn.rope_type, "yarn");
  EXPECT_EQ(yarn.numbers.at("rope.scaling.factor"), 4);
  EXPECT_EQ(yarn.numbers.at("rope.scaling.yarn_beta_fast"), 24);
  EXPECT_EQ(yarn.numbers.at("rope.scaling.yarn_beta_slow"), 2);
  EXPECT_EQ(yarn.numbers.at("rope.scaling.original_context_length"), 512);
  EXPECT_EQ(yarn.numbers.count("rope.scaling.attn_factor"), 0u);
  const Made plain = rope({{"rope_type", "yarn"}, {"factor", 4.0}});
  EXPECT_EQ(
      plain.numbers.count("rope.scaling.yarn_beta_fast") + plain.numbers.count("rope.scaling.yarn_beta_slow"),
      0u);
  // The magnitude of YaRN is 1 + 0.1 ln(factor) ("YaRN", Peng et al., 2023, eq. 22), and 1 up to factor 1.
  EXPECT_NEAR(rope({{"type", "yarn"}, {"factor", 4.0}, {"attention_factor", 1.138629436}})
                  .numbers.at("rope.scaling.attn_factor"),
              1, 1e-6);
  EXPECT_NEAR(rope({{"type", "yarn"}, {"factor", 0.5}, {"attention_factor", 1.5}})
                  .numbers.at("rope.scaling.attn_factor"),
              1.5, 1e-6);
  EXPECT_EQ(rope({{"type", "yarn"}, {"factor", 4.0}, {"mscale", 1.0}}).error, "");

  for (const char* type : {"default", "dynamic", "none"}) {
    const Made same = rope({{"rope_type", type}, {"factor", 2.0}});
    EXPECT_EQ(same.error + same.rope_type, "") << type;
    EXPECT_EQ(same.numbers.count("rope.scaling.factor"), 0u) << type;
  }
}

void expect_near(const std::vector<float>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); i++) EXPECT_NEAR(found[i], expected[i], 1e-6 * expected[i]) << i;
}

// Meta's function apply_scaling: Llama 3.2's numbers, and small ones in which every branch is taken.
TEST(ConfigKeys, Llama3sDivisors) {
  const Made m = rope({{"rope_type", "llama3"},
                       {"factor", 32.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 8192}},
                      {{"head_dim", 64}, {"rope_theta", 5e5}});
  EXPECT_EQ(m.rope_type, "");
  EXPECT_EQ(m.numbers.count("rope.scaling.original_context_length"), 0u);
  std::vector<double> expected(32, 1);
  expected[15] = 1.651329, expected[16] = 3.292262, expected[17] = 9.666729;
  std::fill(expected.begin() + 18, expected.end(), 32);
  expect_near(m.shape.made.at("rope_freqs.weight"), expected);
  const std::vector<double> small = {1, 1, 1, 4.781834, 8, 8, 8, 8};
  expect_near(rope({{"rope_type", "llama3"}, {"factor", 8.0}, {"original_max_position_embeddings", 256}})
                  .shape.made.at("rope_freqs.weight"),
              small);
  const Made usual =
      rope({{"rope_type", "llama3"}, {"factor", 32.0}}, {{"head_dim", 64}, {"rope_theta", 5e5}});
  EXPECT_EQ(usual.shape.made.at("rope_freqs.weight"), m.shape.made.at("rope_freqs.weight")) << "the defaults";
  for (const Json& wrong : {Json{{"factor", 0.0}}, Json{{"factor", -1.0}}, Json{{"low_freq_factor", 4.0}},
                            Json{{"low_freq_factor", 5.0}}, Json{{"rope_theta", 0.0}}}) {
    Json settings = {{"rope_type", "llama3"}, {"factor", 8.0}};
    settings.update(wrong);
    EXPECT_NE(rope(settings).error.find("low_freq_factor below high_freq_factor"), std::string::npos)
        << wrong;
  }
}

// Phi-3's magnitude: sqrt(1 + ln(scale) / ln(original context)); 1.190238 for 128k of 4k.
TEST(ConfigKeys, LongRope) {
  const std::vector<double> longer = {1, 1.5, 2, 2.5, 3, 3.5, 4, 64}, shorter = {1, 1, 1, 1, 1, 1, 1, 1.25};
  const Json settings = {{"type", "longrope"}, {"long_factor", longer}, {"short_factor", shorter}};
  const Json phi3 = {{"max_position_embeddings", 131072}, {"original_max_position_embeddings", 4096}};
  const Made m = rope(settings, phi3);
  EXPECT_EQ(m.error, "");
  expect_near(m.shape.made.at("rope_factors_long.weight"), longer);
  expect_near(m.shape.made.at("rope_factors_short.weight"), shorter);
  EXPECT_NEAR(m.numbers.at("rope.scaling.attn_factor"), 1.190238, 1e-6);
  EXPECT_EQ(m.numbers.at("rope.scaling.original_context_length"), 4096);
  Json other = settings;
  other["type"] = "su", other["factor"] = 4.0;
  EXPECT_NEAR(rope(other).numbers.at("rope.scaling.attn_factor"), 1.0871146, 1e-6) << "of 'factor' and 2048";
  EXPECT_EQ(rope(settings).numbers.at("rope.scaling.attn_factor"), 1) << "no factor";
  other["original_max_position_embeddings"] = 2048;
  EXPECT_EQ(rope(other).numbers.at("rope.scaling.attn_factor"), 1) << "the context is the original one";
  other["attention_factor"] = 1.5;
  EXPECT_EQ(rope(other).numbers.at("rope.scaling.attn_factor"), 1.5);
  Json few = settings;
  few["short_factor"] = {1, 2};
  EXPECT_NE(rope(few, phi3).error.find(
                "'short_factor': expected 8 numbers, one for each pair that is rotated, found 2"),
            std::string::npos);
}

// Which layers have a window: every one but each n-th, or a list of their kinds. The usual period is not
// written, as in GGUF files.
TEST(ConfigKeys, WindowsOfLayers) {
  const auto periods = [](const Made& m) { return m.numbers.count("attention.sliding_window_pattern"); };
  const Json windows = {{"sliding_window", 512}, {"sliding_window_pattern", 3}};
  const Made m = made(windows, "gemma3_text");
  EXPECT_EQ(m.error, "");
  EXPECT_EQ(m.numbers.at("attention.sliding_window"), 512);
  EXPECT_EQ(m.numbers.at("attention.sliding_window_pattern"), 3);
  EXPECT_EQ(made({{"sliding_window", 9999}}, "gemma3_text").numbers.at("attention.sliding_window"), 2048)
      << "no more than all positions";
  EXPECT_EQ(
      made({{"_sliding_window_pattern", 5}}, "gemma3_text").numbers.at("attention.sliding_window_pattern"),
      5);
  EXPECT_EQ(made({{"sliding_window_pattern", 8}}, "cohere2").numbers.at("attention.sliding_window_pattern"),
            8);
  EXPECT_EQ(periods(made({{"sliding_window_pattern", 6}}, "gemma3_text")), 0u);
  EXPECT_EQ(periods(made({{"sliding_window_pattern", 4}}, "cohere2")), 0u);
  EXPECT_EQ(periods(made(Json::object(), "gemma3_text")), 0u);

  Json config = kLlama;
  config["layer_types"] = {"full_attention", "sliding_attention"}, config["sliding_window_pattern"] = 3;
  ModelConfig listed(parse_json(config.dump()), "'config.json'");
  MetadataBuilder out("folder");
  ASSERT_TRUE(add_config(listed, *family_of("gemma3_text"), out));
  const MetadataArray* kinds = out.metadata().array("gemma3.attention.sliding_window_pattern");
  ASSERT_TRUE(kinds);
  EXPECT_EQ(kinds->type, MetadataType::Bool);
  EXPECT_EQ(kinds->integers(), (std::vector<int64_t>{0, 1}));
}

// MiniCPM's report: the scale of depth is divided by the root of the number of layers, and the logits by the
// width in units of the base model's.
TEST(ConfigKeys, ScalesOfMiniCpm) {
  const Json scales = {
      {"scale_emb", 12}, {"scale_depth", 1.4}, {"dim_model_base", 16}, {"num_hidden_layers", 4}};
  const Made m = made(scales, "minicpm");
  EXPECT_EQ(m.error, "");
  EXPECT_EQ(m.numbers.at("embedding_scale"), 12);
  EXPECT_EQ(m.numbers.at("residual_scale"), double(0.7f));
  EXPECT_EQ(m.numbers.at("logit_scale"), 4);
  const Made none = made({{"num_hidden_layers", 4}}, "minicpm");
  EXPECT_EQ(none.numbers.at("embedding_scale"), 1);
  EXPECT_EQ(none.numbers.at("residual_scale"), 0.5);
  EXPECT_EQ(none.numbers.at("logit_scale"), 1);
}

// Granite's config names the scale of the scores itself. Without one it is the usual one, and not 0.
TEST(ConfigKeys, ScalesOfGranite) {
  const Json scales = {{"embedding_multiplier", 12.0},
                       {"residual_multiplier", 0.25},
                       {"logits_scaling", 8.0},
                       {"attention_multiplier", 0.0625}};
  const Made m = made(scales, "granite");
  EXPECT_EQ(m.error, "");
  EXPECT_EQ(m.numbers.at("embedding_scale"), 12);
  EXPECT_EQ(m.numbers.at("residual_scale"), 0.25);
  EXPECT_EQ(m.numbers.at("logit_scale"), 8);
  EXPECT_EQ(m.numbers.at("attention.scale"), 0.0625);
  EXPECT_EQ(made(Json::object(), "granite").numbers.count("attention.scale"), 0u);
}

// Hunyuan's factor "alpha" belongs to its own scaling of the rotation. Other files do not have it.
TEST(ConfigKeys, AlphaOfHunyuan) {
  const auto hunyuan = [](const Json& settings) {
    return made({{"rope_scaling", settings}}, "hunyuan_v1_dense");
  };
  const Made m = hunyuan({{"type", "dynamic"}, {"alpha", 1000.0}, {"factor", 1.0}});
  EXPECT_EQ(m.error, "");
  EXPECT_EQ(m.numbers.at("rope.scaling.alpha"), 1000);
  EXPECT_EQ(hunyuan({{"type", "dynamic"}, {"factor", 1.0}}).numbers.count("rope.scaling.alpha"), 0u);
  EXPECT_EQ(hunyuan({{"type", "dynamic"}, {"alpha", 0.0}}).numbers.count("rope.scaling.alpha"), 0u);
  EXPECT_EQ(made(Json::object(), "hunyuan_v1_dense").numbers.count("rope.scaling.alpha"), 0u);
}

// GLM-4.5 chooses its experts by sigmoids, which GGUF calls 2.
TEST(ConfigKeys, ExpertsOfGlm4) {
  const Json experts = {{"n_routed_experts", 8}, {"num_experts_per_tok", 2},   {"moe_intermediate_size", 48},
                        {"n_shared_experts", 1}, {"first_k_dense_replace", 1}, {"routed_scaling_factor", 2.5},
                        {"n_group", 1}};
  const Made m = made(experts, "glm4_moe");
  EXPECT_EQ(m.error, "");
  EXPECT_EQ(m.numbers.at("expert_gating_func"), 2);
  EXPECT_EQ(m.numbers.at("leading_dense_block_count"), 1);
  EXPECT_EQ(m.numbers.at("expert_shared_count"), 1);
  EXPECT_EQ(m.numbers.at("expert_weights_scale"), 2.5);
  EXPECT_EQ(m.numbers.count("expert_group_count"), 0u) << "one group is none";
  Json groups = experts;
  groups["n_group"] = 4, groups["topk_group"] = 2;
  const Made grouped = made(groups, "glm4_moe");
  EXPECT_EQ(grouped.numbers.at("expert_group_count"), 4);
  EXPECT_EQ(grouped.numbers.at("expert_group_used_count"), 2);
}

TEST(ConfigKeys, WhatIsNotComputedIsRefused) {
  const std::tuple<Json, Code, const char*> kWrong[] = {
      {{{"num_attention_heads", 0}}, Code::Malformed, "'config.json': a model without attention heads"},
      {{{"num_attention_heads", 0}, {"num_key_value_heads", 2}}, Code::Malformed, "without attention heads"},
      {{{"num_key_value_heads", 0}}, Code::Malformed, "a model without attention heads"},
      {{{"hidden_size", nullptr}}, Code::Malformed, "'hidden_size': expected a whole number, found nothing"},
      {{{"hidden_act", "gelu"}}, Code::Unsupported, "'hidden_act': 'gelu' is not computed for this family"},
      {{{"hidden_act", "sil"}}, Code::Unsupported, "'sil' is not computed"},
      {{{"hidden_activation", "relu"}, {"hidden_act", "silu"}}, Code::Unsupported, "'relu'"},
      {{{"quantization_config", {{"quant_method", "awq"}}}},
       Code::Unsupported,
       "weights by 'awq' are not read"},
      {{{"quantization_config", Json::object()}}, Code::Unsupported, "'an unnamed method'"},
      {{{"rope_scaling", {{"type", "spiral"}}}}, Code::Unsupported, "the type 'spiral' is not computed"},
      {{{"rope_scaling", {{"type", "linear"}}}},
       Code::Malformed,
       "'factor': expected a number, found nothing"},
      {{{"rope_scaling", {{"type", "yarn"}}}}, Code::Malformed, "'factor': expected a number"},
      {{{"rope_scaling", 3}}, Code::Malformed, "'rope_scaling': expected an object"},
      {{{"rope_scaling", {{"type", "yarn"}, {"factor", 2.0}, {"mscale", 1.0}, {"mscale_all_dim", 1.0}}}},
       Code::Unsupported,
       "'mscale' and 'mscale_all_dim' of YaRN"},
      {{{"tie_word_embeddings", 1}},
       Code::Malformed,
       "'tie_word_embeddings': expected true or false, found '1'"},
  };
  for (const auto& [changes, code, why] : kWrong) {
    const Made m = made(changes);
    EXPECT_NE(m.error.find(why), std::string::npos) << changes << ": " << m.error;
    EXPECT_EQ(m.code, code) << changes;
  }
  // The family's own values come last.
  EXPECT_NE(
      made({{"use_sliding_window", true}}, "qwen2").error.find("'use_sliding_window': layers with a window"),
      std::string::npos);
  EXPECT_EQ(made({{"use_sliding_window", true}}).error, "") << "a llama has no such value";
  for (const char* right : {"silu", "swish"}) EXPECT_EQ(made({{"hidden_act", right}}).error, "");
  EXPECT_EQ(made({{"quantization_config", {{"quant_method", "fp8"}}}}).error, "");
  EXPECT_NE(made({{"quantization_config", {{"quant_method", "gptq"}}}}).remedy.find("bf16, f16, f32 or fp8"),
            std::string::npos);
}

}  // namespace
}  // namespace gimbal::test
