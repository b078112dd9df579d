// Where the architectures differ: the tensors that each asks for and refuses, and the rotary angles of YaRN,
// against small files made here. That they compute the right numbers shows in golden_logits_test.
#include "model/arch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "discovery/registry.h"
#include "runtime/model_plan.h"
#include "support/tiny_llama.h"

namespace gimbal {
namespace {

using namespace gimbal::test;

// The error that planning the file ends with, if any.
std::optional<Error> plan(const TinyLlama& spec) {
  const std::string bytes = spec.build();
  auto file = Gguf::parse(std::as_bytes(std::span(bytes)), "small.gguf");
  if (!file) return file.error();
  auto device = open_device({"cpu", 0, true, "threads=1"});
  if (!device) return device.error();
  auto b = make_model_plan(*file, *device->device, {});
  if (!b) return b.error();
  return std::nullopt;
}

// The definition of Peng et al. 2023 in the form of its authors' code, worked out here on its own: 16 pairs,
// base 10000, factor 4, trained on 2048 positions.
TEST(RopeAngles, YarnKeepsFastPairsAndDividesSlowOnes) {
  TinyLlama spec;
  spec.text("llama.rope.scaling.type", "yarn");
  spec.f32("rope.scaling.factor", 4), spec.u32("rope.scaling.original_context_length", 2048);
  spec.u32("attention.key_length", 32);
  const std::string bytes = spec.build();
  auto file = Gguf::parse(std::as_bytes(std::span(bytes)), "small.gguf");
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

struct Refused {
  const char* about;
  std::function<void(TinyLlama&)> change;
  Code code;
  std::vector<const char*> words;
};

// What one architecture needs and another does not have.
TEST(Arch, NeedsItsTensorsAndTakesNoOthers) {
  auto as = [](const char* arch, auto change) {
    return [arch, change](TinyLlama& s) {
      const auto keys = s.keys;
      s.keys.clear();
      for (auto& [key, value] : keys)
        s.keys[key.rfind("llama.", 0) == 0 ? std::string(arch) + key.substr(5) : key] = value;
      s.text("general.architecture", arch);
      change(s);
    };
  };
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
  for (const Refused& r : all) {
    TinyLlama spec;
    r.change(spec);
    const auto e = plan(spec);
    ASSERT_TRUE(e) << r.about << ": taken for a model";
    EXPECT_EQ(e->code, r.code) << r.about << ": " << e->message;
    for (const char* word : r.words)
      EXPECT_NE(e->message.find(word), std::string::npos) << word << " in: " << e->message;
  }
  for (auto [name, change] : {std::pair<const char*, std::function<void(TinyLlama&)>>{"qwen2", biases},
                              {"bitnet", norms},
                              {"bitnet-b1.58", norms}}) {
    TinyLlama spec;
    as(name, change)(spec);
    const auto e = plan(spec);
    EXPECT_FALSE(e) << name << ": " << e->message;
  }
}

}  // namespace
}  // namespace gimbal
