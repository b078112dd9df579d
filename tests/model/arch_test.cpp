// Where the architectures differ: the tensors that each asks for and refuses, and the rotary angles of YaRN,
// against small files made here. That they compute the right numbers shows in golden_logits_test.
#include "model/arch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "files/gguf.h"
#include "support/refused.h"

namespace gimbal {
namespace {

using namespace gimbal::test;

// The definition of Peng et al. 2023 in the form of its authors' code, worked out here on its own: 16 pairs,
// base 10000, factor 4, trained on 2048 positions.
TEST(RopeAngles, YarnKeepsFastPairsAndDividesSlowOnes) {
  TinyLlama spec;
  spec.text("llama.rope.scaling.type", "yarn");
  spec.f32("rope.scaling.factor", 4), spec.u32("rope.scaling.original_context_length", 2048);
  spec.u32("attention.key_length", 32);
  const std::string bytes = spec.build();
  auto file = parse_gguf(std::as_bytes(std::span(bytes)), "small.gguf");
  ASSERT_TRUE(file) << file.error().message;
  auto config = configure(*file);
  ASSERT_TRUE(config) << config.error().message;
  std::vector<float> got(32);
  const auto angles = RopeAngles::create(*file, "llama", config->rotated, config->rope_base);
  ASSERT_TRUE(angles) << angles.error().message;
  angles->fill(5, got.data());
  // Pairs that turn 32 times and once in 2048 positions: 16 * ln(2048 / (2 pi turns)) / ln(10000).
  auto pair_of = [](double turns) { return 16 * std::log(2048 / (2 * M_PI * turns)) / std::log(10000.0); };
  const double low = std::floor(pair_of(32)), high = std::ceil(pair_of(1)), size = 1 + 0.1 * std::log(4.0);
  ASSERT_EQ(low, 4);
  ASSERT_EQ(high, 11);
  for (int i = 0; i < 16; i++) {
    const double plain = std::pow(10000.0, -i / 16.0);
    const double mixed = i <= 4    ? plain
                         : i >= 11 ? plain / 4
                                   : plain * (1 - (i - 4) / 7.0) + plain / 4 * (i - 4) / 7.0;
    EXPECT_NEAR(got[size_t(2 * i)], size * std::cos(5 * mixed), 1e-7) << i;
    EXPECT_NEAR(got[size_t(2 * i + 1)], size * std::sin(5 * mixed), 1e-7) << i;
  }
}

// [6, 3, 3] of 12 pairs in turns of three, as Qwen3-VL deals them: time, line, column as long as each has
// pairs left, and the rest by the time.
TEST(RopeAngles, PairsAreDealtToThePlaceInTurn) {
  GgufWriter w;
  w.string("general.architecture", "llama");
  w.array("llama.rope.dimension_sections", kI32, std::vector<int32_t>{6, 3, 3});
  const std::string bytes = w.build();
  const auto file = parse_gguf(std::as_bytes(std::span(bytes)), "sections.gguf");
  ASSERT_TRUE(file) << file.error().message;
  const RopePosition place{3, 5, 8};
  for (const auto& [order, axes] :
       {std::pair(RopeSections::InTurn, "tlctlctlcttt"), {RopeSections::Blocks, "ttttttlllccc"}}) {
    const auto angles = RopeAngles::create(*file, "llama", {.rotated = 24, .base = 100, .sections = order});
    ASSERT_TRUE(angles) << angles.error().message;
    ASSERT_TRUE(angles->in_sections());
    std::vector<float> got(24);
    angles->fill(place, got.data());
    for (int i = 0; i < 12; i++) {
      const int at = axes[i] == 't' ? place.time : axes[i] == 'l' ? place.line : place.column;
      const double angle = at * std::pow(100.0, -i / 12.0);
      EXPECT_NEAR(got[size_t(2 * i)], std::cos(angle), 1e-6) << axes << " " << i;
      EXPECT_NEAR(got[size_t(2 * i + 1)], std::sin(angle), 1e-6) << axes << " " << i;
    }
  }
}

// What one architecture needs and another does not have.
TEST(Arch, NeedsItsTensorsAndTakesNoOthers) {
  auto nothing = [](TinyLlama&) {};
  auto norms = [](TinyLlama& s) {
    s.tensors["blk.0.attn_sub_norm.weight"].dims = {8};
    s.tensors["blk.0.ffn_sub_norm.weight"].dims = {12};
  };
  auto biases = [](TinyLlama& s) {
    s.tensors["blk.0.attn_q.bias"].dims = {8};
    s.tensors["blk.0.attn_k.bias"].dims = s.tensors["blk.0.attn_v.bias"].dims = {4};
  };
  const std::vector<Refused> all = {
      {"llama with norms inside", norms, Code::Unsupported, {"sub_norm", "llama"}},
      {"llama with a scale of two",
       [](TinyLlama& s) { s.tensors["blk.0.attn_q.scale"].dims = {2}; },
       Code::Malformed,
       {"attn_q.scale"}},
      {"qwen2 without biases", as("qwen2", nothing), Code::Malformed, {"blk.0.attn_q.bias", "missing"}},
      {"bitnet without its norms",
       as("bitnet", nothing),
       Code::Malformed,
       {"attn_sub_norm.weight", "missing"}},
      {"bitnet-b1.58 without its norms",
       as("bitnet-b1.58", nothing),
       Code::Malformed,
       {"attn_sub_norm.weight", "missing"}},
      {"bitnet with a scale of two",
       as("bitnet", [=](TinyLlama& s) { norms(s), s.tensors["blk.0.ffn_up.scale"].dims = {2}; }),
       Code::Malformed,
       {"blk.0.ffn_up.scale", "2 x 1", "1 x 1"}},
      {"bitnet with a scale and a bias",
       as("bitnet",
          [=](TinyLlama& s) {
            norms(s), s.tensors["blk.0.attn_q.scale"].dims = {1}, s.tensors["blk.0.attn_q.bias"].dims = {8};
          }),
       Code::Unsupported,
       {"blk.0.attn_q.bias"}},
  };
  expect_refused(all);
  for (auto [name, change] : {std::pair<const char*, std::function<void(TinyLlama&)>>{"qwen2", biases},
                              {"bitnet", norms},
                              {"bitnet-b1.58", norms}}) {
    TinyLlama spec;
    as(name, change)(spec);
    const auto e = plan(spec);
    EXPECT_FALSE(e) << name << ": " << e->message;
  }
}

// Tensors and numbers of the dense decoders, wrong in ways that must not become an answer or a crash.
TEST(Arch, RefusesWhatMakesNoSense) {
  auto head_norms = [](uint64_t q, uint64_t k) {
    return [q, k](TinyLlama& s) {
      tensor(s, "blk.0.attn_q_norm.weight", {q}), tensor(s, "blk.0.attn_k_norm.weight", {k});
    };
  };
  auto factors = [](uint64_t n, const char* type) {
    return [n, type](TinyLlama& s) {
      tensor(s, "rope_factors_long.weight", {n}), tensor(s, "rope_factors_short.weight", {n});
      if (type) s.text("llama.rope.scaling.type", type);
    };
  };
  auto number = [](const char* key, float v) { return [=](TinyLlama& s) { s.f32(key, v); }; };
  auto count = [](const char* key, uint32_t n) { return [=](TinyLlama& s) { s.u32(key, n); }; };
  auto no_norm = [](TinyLlama& s) { s.tensors.erase("blk.0.ffn_norm.weight"); };
  auto gpt2 = [](TinyLlama& s) { tensor(s, "position_embd.weight", {8, 63}); };
  const std::vector<Refused> all = {
      {"qwen3 without norms", as("qwen3", [](TinyLlama&) {}), Code::Malformed, {"attn_q_norm", "missing"}},
      {"qwen3, a norm too long", as("qwen3", head_norms(8, 4)), Code::Malformed, {"attn_q_norm", "8"}},
      {"hunyuan, k's norm", as("hunyuan-dense", head_norms(4, 2)), Code::Malformed, {"attn_k_norm", "2"}},
      {"hunyuan, alpha", as("hunyuan-dense", number("rope.scaling.alpha", -1)), Code::Malformed, {"alpha"}},
      {"phi3, factors for 3 pairs", as("phi3", factors(3, nullptr)), Code::Malformed, {"rope_factors"}},
      {"phi3, factors and linear", as("phi3", factors(2, "linear")), Code::Malformed, {"longrope", "linear"}},
      {"granite without a scale", as("granite", [](TinyLlama&) {}), Code::Malformed, {"logit_scale"}},
      {"granite, logits over 0", as("granite", number("logit_scale", 0)), Code::Malformed, {"logit_scale"}},
      {"minicpm, scale", as("minicpm", number("residual_scale", NAN)), Code::Malformed, {"residual_scale"}},
      {"mistral3, division by 0",
       as("mistral3",
          [](TinyLlama& s) {
            s.f32("attention.temperature_scale", 1), s.u32("rope.scaling.original_context_length", 0);
          }),
       Code::Malformed,
       {"original_context_length"}},
      {"cohere2 without a window", as("cohere2", no_norm), Code::Malformed, {"sliding_window", "nothing"}},
      {"cohere2, window 0",
       as("cohere2", count("attention.sliding_window", 0)),
       Code::Malformed,
       {"sliding_window"}},
      {"cohere2, window larger than the context",
       as("cohere2", count("attention.sliding_window", 65)),
       Code::Malformed,
       {"sliding_window", "65", "64"}},
      {"olmo2, a pattern for two layers",
       as("olmo2",
          [](TinyLlama& s) {
            s.u32("attention.sliding_window", 8), flags(s, "attention.sliding_window_pattern", {1, 0});
          }),
       Code::Malformed,
       {"sliding_window_pattern", "1 layers", "a list of 2"}},
      {"glm4 with layers for guesses only",
       as("glm4", count("nextn_predict_layers", 1)),
       Code::Malformed,
       {"nextn_predict_layers"}},
      {"stablelm, norms for 3 heads",
       as("stablelm",
          [](TinyLlama& s) {
            tensor(s, "blk.0.attn_norm.bias", {8}), tensor(s, "blk.0.attn_q_norm.weight", {4, 3});
          }),
       Code::Malformed,
       {"attn_q_norm", "4 x 3"}},
      {"gpt2, too few positions", as("gpt2", gpt2), Code::Malformed, {"position_embd", "8 x 63", "8 x 64"}},
      {"gptneox says not how its blocks stand",
       as("gptneox", [](TinyLlama&) {}),
       Code::Malformed,
       {"use_parallel_residual"}},
      {"mpt, clamp below 0", as("mpt", number("attention.clamp_kqv", -1)), Code::Malformed, {"clamp_kqv"}},
      {"bloom without its norm", as("bloom", [](TinyLlama&) {}), Code::Malformed, {"token_embd_norm"}},
      {"falcon without biases", as("falcon", no_norm), Code::Malformed, {"attn_norm.bias"}},
      {"apertus without numbers of its activation",
       as("apertus", [](TinyLlama&) {}),
       Code::Malformed,
       {"xielu.eps", "1 layers"}},
      {"apertus with numbers for two layers",
       as("apertus",
          [](TinyLlama& s) {
            s.keys["xielu.eps"] = {kArray, le<uint32_t>(kF32) + le<uint64_t>(2) + le(0.f) + le(0.f)};
          }),
       Code::Malformed,
       {"xielu.eps", "1 layers"}},
      {"apertus with a bound far below 0",
       as("apertus",
          [](TinyLlama& s) {
            for (const char* key : {"alpha_p", "alpha_n", "beta", "eps"})
              s.keys[std::string("xielu.") + key] = {kF32, le(-1.f)};
          }),
       Code::Unsupported,
       {"xielu.eps", "-1", "layer 0"}},
      {"phi2 without biases", as("phi2", no_norm), Code::Malformed, {"attn_norm.bias"}},
      {"olmo, clamp below 0", as("olmo", number("attention.clamp_kqv", -1)), Code::Malformed, {"clamp_kqv"}},
      {"baichuan of an unknown size",
       as("baichuan", [](TinyLlama&) {}),
       Code::Unsupported,
       {"baichuan", "1 layers", "32", "40"}},
      {"minicpm3 without latent attention",
       as("minicpm3", [](TinyLlama&) {}),
       Code::Malformed,
       {"kv_lora_rank"}},
      {"muse without the scale of its logits",
       as("muse-glimmer", count("attention.sliding_window", 8)),
       Code::Malformed,
       {"logit_scale"}},
      {"granite_swa without sinks",
       as("granite_swa",
          [](TinyLlama& s) {
            s.f32("logit_scale", 1), s.u32("attention.sliding_window", 8),
                flags(s, "attention.sliding_window_pattern", {1});
          }),
       Code::Malformed,
       {"attn_sinks"}},
      {"spark without a list of its windows",
       as("spark2_5", count("attention.sliding_window", 8)),
       Code::Malformed,
       {"sliding_window_pattern"}},
  };
  expect_refused(all);
}

void sizes_of_scan(TinyLlama& s, uint32_t inner, uint32_t state, uint32_t rank, uint32_t groups) {
  s.u32("ssm.conv_kernel", 4), s.u32("ssm.inner_size", inner), s.u32("ssm.state_size", state);
  s.u32("ssm.time_step_rank", rank), s.u32("ssm.group_count", groups);
}

// A whole Mamba 2: 4 heads of 4 in 2 groups.
void mamba2_layer(TinyLlama& s) {
  for (auto it = s.tensors.begin(); it != s.tensors.end();)
    it = it->first.starts_with("blk.0.") ? s.tensors.erase(it) : std::next(it);
  s.u32("attention.head_count", 0), s.u32("feed_forward_length", 0);
  sizes_of_scan(s, 16, 4, 4, 2);
  for (auto& [name, dims] : std::map<std::string, std::vector<uint64_t>>{{"attn_norm.weight", {8}},
                                                                         {"ssm_in.weight", {8, 52}},
                                                                         {"ssm_conv1d.weight", {4, 32}},
                                                                         {"ssm_conv1d.bias", {32}},
                                                                         {"ssm_dt.bias", {4}},
                                                                         {"ssm_a", {1, 4}},
                                                                         {"ssm_d", {1, 4}},
                                                                         {"ssm_norm.weight", {8, 2}},
                                                                         {"ssm_out.weight", {16, 8}}})
    tensor(s, "blk.0." + name, dims);
}

TEST(Arch, RefusesRecurrentLayersThatMakeNoSense) {
  TinyLlama whole;
  as("mamba2", mamba2_layer)(whole);
  const auto taken = plan(whole);
  EXPECT_FALSE(taken) << taken->message;

  auto mamba2 = [](auto change) {
    return as("mamba2", [change](TinyLlama& s) { mamba2_layer(s), change(s); });
  };
  auto count = [](const char* key, uint32_t n) { return [=](TinyLlama& s) { s.u32(key, n); }; };
  auto shaped = [](const char* name, std::vector<uint64_t> dims) {
    return [=](TinyLlama& s) { tensor(s, name, dims); };
  };
  auto without = [](const char* name) { return [=](TinyLlama& s) { s.tensors.erase(name); }; };
  auto scan = [](uint32_t inner, uint32_t state, uint32_t rank, uint32_t groups) {
    return [=](TinyLlama& s) { sizes_of_scan(s, inner, state, rank, groups); };
  };
  auto listed = [](const char* key, std::vector<int32_t> values) {
    return [=](TinyLlama& s) { s.u32("shortconv.l_cache", 3), s.counts(key, values); };
  };
  const uint32_t most = kMaxCount;
  expect_refused({
      {"no taps", mamba2(count("ssm.conv_kernel", 0)), Code::Malformed, {"ssm.conv_kernel", "0"}},
      {"17 taps",
       mamba2([](TinyLlama& s) {
         s.u32("ssm.conv_kernel", 17), tensor(s, "blk.0.ssm_conv1d.weight", {17, 32});
       }),
       Code::Unsupported,
       {"short_conv", "16 taps"}},
      {"no sizes",
       mamba2([](TinyLlama& s) { s.keys.erase("llama.ssm.inner_size"); }),
       Code::Malformed,
       {"ssm.inner_size", "nothing"}},
      {"3 heads of 16", mamba2(count("ssm.time_step_rank", 3)), Code::Malformed, {"16", "multiple", "3"}},
      {"4 heads in 3 groups", mamba2(count("ssm.group_count", 3)), Code::Malformed, {"multiple", "3"}},
      {"no groups", mamba2(count("ssm.group_count", 0)), Code::Malformed, {"ssm.group_count"}},
      {"a state too large", mamba2(scan(most, most, most, most)), Code::Malformed, {"more than any model"}},
      {"a for 3 heads", mamba2(shaped("blk.0.ssm_a", {1, 3})), Code::Malformed, {"ssm_a", "1 x 3", "1 x 4"}},
      {"no norm", mamba2(without("blk.0.ssm_norm.weight")), Code::Malformed, {"ssm_norm", "missing"}},
      {"a norm of one group",
       mamba2(shaped("blk.0.ssm_norm.weight", {16, 1})),
       Code::Malformed,
       {"ssm_norm", "8 x 2"}},
      {"an attention besides",
       mamba2(shaped("blk.0.attn_q.weight", {8, 8})),
       Code::Unsupported,
       {"attn_q", "mamba2"}},
      {"mamba, a flag that is a number",
       as("mamba", [](TinyLlama& s) { mamba2_layer(s), s.f32("ssm.dt_b_c_rms", 1); }),
       Code::Malformed,
       {"ssm.dt_b_c_rms", "true or false"}},
      {"mamba without its matrices", as("mamba", mamba2_layer), Code::Malformed, {"ssm_in", "8 x 52"}},
      {"falcon-h1 without a mixer", as("falcon-h1", scan(16, 4, 4, 2)), Code::Malformed, {"ssm_in"}},
      {"nemotron_h, a width below 0",
       as("nemotron_h", listed("feed_forward_length", {-1})),
       Code::Malformed,
       {"feed_forward_length", "-1"}},
      {"granitehybrid, logits over 0",
       as("granitehybrid", [](TinyLlama& s) { s.f32("logit_scale", 0); }),
       Code::Malformed,
       {"logit_scale"}},
      {"jamba, 3 of 2 experts",
       as("jamba",
          [](TinyLlama& s) {
            s.u32("expert_count", 2), s.u32("expert_used_count", 3);
            tensor(s, "blk.0.ffn_gate_inp.weight", {8, 2});
          }),
       Code::Malformed,
       {"expert_used_count is 3"}},
      {"jamba, a router of no experts",
       as("jamba", shaped("blk.0.ffn_gate_inp.weight", {8, 2})),
       Code::Malformed,
       {"expert_count"}},
      {"lfm2, heads for two layers",
       as("lfm2", listed("attention.head_count_kv", {0, 1})),
       Code::Malformed,
       {"head_count_kv", "1 layers", "a list of 2"}},
      {"lfm2 with no attention at all",
       as("lfm2", listed("attention.head_count_kv", {0})),
       Code::Malformed,
       {"head_count_kv"}},
      {"lfm2, a window larger than the context",
       as("lfm2", count("attention.sliding_window", 65)),
       Code::Malformed,
       {"sliding_window", "65"}},
      {"lfm2, norms of heads", as("lfm2", [](TinyLlama&) {}), Code::Malformed, {"attn_q_norm", "missing"}},
      {"lfm2moe, no experts", as("lfm2moe", count("expert_count", 0)), Code::Malformed, {"expert_count"}},
      {"qwen35, layers of two",
       as("qwen35",
          [](TinyLlama& s) {
            flags(s, "attention.recurrent_layers", {1, 0});
          }),
       Code::Malformed,
       {"recurrent_layers", "a list of 2"}},
      {"qwen35, every 0th layer",
       as("qwen35", count("full_attention_interval", 0)),
       Code::Malformed,
       {"full_attention_interval"}},
      {"qwen35, heads of another size",
       as("qwen35", scan(16, 8, 4, 2)),
       Code::Malformed,
       {"ssm.inner_size 16"}},
      {"qwen3next, 3 heads of v on 2 of k",
       as("qwen3next", scan(12, 4, 3, 2)),
       Code::Malformed,
       {"multiple"}},
      {"qwen3next without experts",
       as("qwen3next", scan(16, 4, 4, 2)),
       Code::Malformed,
       {"expert_count", "nothing"}},
      {"qwen35 of guesses only",
       as("qwen35", count("nextn_predict_layers", 1)),
       Code::Malformed,
       {"nextn_predict_layers"}},
  });
}

// No position may be looked up that was not learned.
TEST(Arch, LearnedPositionsEndTheContext) {
  TinyLlama spec;
  spec.tensors.erase("blk.0.ffn_gate.weight");
  tensor(spec, "position_embd.weight", {8, 64});
  for (auto& [name, rows] : std::map<std::string, uint64_t>{{"blk.0.attn_norm", 8},
                                                            {"blk.0.attn_q", 8},
                                                            {"blk.0.attn_k", 4},
                                                            {"blk.0.attn_v", 4},
                                                            {"blk.0.attn_output", 8},
                                                            {"blk.0.ffn_norm", 8},
                                                            {"blk.0.ffn_up", 12},
                                                            {"blk.0.ffn_down", 8},
                                                            {"output_norm", 8}})
    tensor(spec, name + ".bias", {rows});
  as("gpt2", [](TinyLlama&) {})(spec);
  const auto fits = plan(spec, 64), longer = plan(spec, 65);
  EXPECT_FALSE(fits) << fits->message;
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->code, Code::Usage);
  EXPECT_NE(longer->message.find("64"), std::string::npos) << longer->message;
}

// A pattern of no layers: all have the window.
TEST(Arch, APatternOfZeroHasWindowsAlone) {
  TinyLlama spec;
  as("cohere2", [](TinyLlama& s) {
    s.tensors.erase("blk.0.ffn_norm.weight"), s.f32("logit_scale", 0.5);
    s.u32("attention.sliding_window", 8), s.u32("attention.sliding_window_pattern", 0);
  })(spec);
  const auto refused = plan(spec);
  ASSERT_FALSE(refused) << refused->message;
  const auto windows = [](const auto& op) {
    return OpKind(op.kind) == OpKind::Attention && op.param.i[1] == 8;
  };
  EXPECT_EQ(ops_of(spec, windows).size(), 1u);
}

// Blocks of MiniCPM are scaled by the number of layers that the file has, also where a check computes the
// first ones alone.
TEST(Arch, MiniCpmScalesByAllLayersOfTheFile) {
  TinyLlama s;
  as("minicpm", [](TinyLlama& t) {
    t.u32("block_count", 4);
    const auto one = t.tensors;
    for (const auto& [name, tensor] : one)
      for (int layer = 1; layer < 4; layer++)
        if (name.starts_with("blk.0.")) t.tensors["blk." + std::to_string(layer) + name.substr(5)] = tensor;
  })(s);
  for (const int first : {0, 2}) {
    RunOptions options;
    options.first_layers = first;
    const float wanted = float(1.4 / std::sqrt(4.0));
    const auto scaled = ops_of(
        s, [&](const auto& op) { return OpKind(op.kind) == OpKind::Scale && float(op.param.f[0]) == wanted; },
        options);
    EXPECT_EQ(scaled.size(), size_t(2 * (first ? first : 4)));
  }
}

}  // namespace
}  // namespace gimbal
