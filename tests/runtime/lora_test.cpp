// LoRA adapters: a model with one beside it against the same model with the adapter added to its weights, and
// adapters that do not belong to it.
#include "model/lora.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/file.h"
#include "base/format.h"
#include "model/arch.h"
#include "support/adapters.h"
#include "support/gguf_writer.h"
#include "support/golden.h"
#include "support/placed.h"
#include "support/refused.h"
#include "support/schedules.h"

namespace gimbal::test {
namespace {

std::vector<float> logits(const std::string& path, const std::vector<Lora>& lora, size_t split = 0) {
  static const auto cpu = open_one("cpu", 0, "threads=2");
  ModelSource file = open_file(path);
  for (const Lora& l : lora) {
    auto ok = add_lora(file, l);
    EXPECT_TRUE(ok) << ok.error().message;
  }
  RunOptions o;
  o.context = 256, o.batch = 32, o.logit_rows = 32, o.cache_type = DType::F32;
  auto m = load_placed(file, {{cpu.get(), configure(file)->layers, ""}}, o);
  if (!m) {
    ADD_FAILURE() << path << ": " << m.error().message;
    return {};
  }
  return logits_of(**m, any_tokens(50, std::min(500, (*m)->config().vocabulary)), split);
}

// One layer of Gemma 3n, whose streams begin and end with one matrix of three: the collection's file is not
// in tests/data.
std::string tiny_gemma3n() {
  TinyLlama s;
  as("gemma3n", [](TinyLlama& t) {
    t.u32("attention.sliding_window", 4), t.u32("embedding_length_per_layer_input", 8);
  })(s);
  for (const char* name : {"attn_q_norm", "attn_k_norm"}) tensor(s, format("blk.0.{}.weight", name), {4});
  for (const char* name : {"post_attention_norm", "post_ffw_norm", "post_norm", "altup_correct_scale",
                           "altup_router_norm", "laurel_post_norm"})
    tensor(s, format("blk.0.{}.weight", name), {8});
  for (auto& [name, dims] :
       std::map<std::string, std::vector<uint64_t>>{{"blk.0.inp_gate", {8, 8}},
                                                    {"blk.0.proj", {8, 8}},
                                                    {"blk.0.altup_correct_coef", {4, 4}},
                                                    {"blk.0.altup_predict_coef", {4, 16}},
                                                    {"blk.0.altup_router", {8, 4}},
                                                    {"blk.0.laurel_l", {8, 64}},
                                                    {"blk.0.laurel_r", {64, 8}},
                                                    {"per_layer_token_embd", {8, 5}},
                                                    {"per_layer_model_proj", {8, 8}},
                                                    {"per_layer_proj_norm", {8}},
                                                    {"altup_proj", {8, 8, 3}},
                                                    {"altup_unembd_proj", {8, 8, 3}}})
    tensor(s, name + ".weight", dims);
  s.weight = [](uint64_t i) { return float(i * 2654435761u % 2001) / 1000 - 1; };
  const std::string path = temporary_path("tiny-gemma3n.gguf");
  EXPECT_TRUE(write_file(path, s.build()));
  return path;
}

TEST(Lora, IsTheModelWithTheAdapterAddedToItsWeights) {
  // Plain; experts; a joined matrix with a bias; parts of a matrix; one matrix of several.
  for (const char* name :
       {"arch/llama-gqa", "more/arch/lfm2moe", "more/arch/bloom", "more/arch/mamba2", "gemma3n"}) {
    SCOPED_TRACE(name);
    const std::string path =
        name == std::string("gemma3n") ? tiny_gemma3n() : golden_dir() + "/" + name + ".gguf";
    const Adapted made = make_adapter(path);
    const auto alone = logits(path, {}), merged = logits(made.merged, {}),
               beside = logits(path, {{made.adapter, kAdapterScale}});
    EXPECT_GT(farthest(alone, merged), 0.5) << "the adapter does something";
    EXPECT_LT(farthest(beside, merged), 2e-3);
    std::printf("%-24s farthest logit %.1e\n", name, farthest(beside, merged));
    EXPECT_EQ(bits_differ(beside, logits(path, {{made.adapter, kAdapterScale}}, 7)), "") << "for any split";
    // Two halves are a whole.
    const auto halves = logits(path, {{made.adapter, kAdapterScale / 2}, {made.adapter, kAdapterScale / 2}});
    EXPECT_LT(farthest(halves, merged), 2e-3);
  }
}

// As in pinned_bits_test: the bits of adapters at scales that were part of the program, before texts had
// scales.
TEST(Lora, PinnedBits) {
  struct Pin {
    const char* model;
    float scale;
    uint64_t hash;
  };
  const Pin pins[] = {
      {"arch/llama-gqa", 0.7f, 0x118d57ffe2823877},    {"arch/llama-gqa", -1.5f, 0x6b7d77e44e87f14d},
      {"more/arch/lfm2moe", 0.7f, 0xdc0bc8bbb2bc4c56}, {"more/arch/lfm2moe", -1.5f, 0x9a3fa2b41a6d66c8},
      {"more/arch/bloom", 0.7f, 0x8c79389ad7242a0d},   {"more/arch/bloom", -1.5f, 0xe47cee2621edf2fe},
      {"more/arch/mamba2", 0.7f, 0xc712cb5a7eb64ab1},  {"more/arch/mamba2", -1.5f, 0x2e10f589905107b9},
  };
  for (const Pin& pin : pins) {
    const std::string path = golden_dir() + "/" + pin.model + ".gguf";
    const Adapted made = make_adapter(path);
    uint64_t h = 0xcbf29ce484222325;
    for (float v : logits(path, {{made.adapter, pin.scale}, {made.adapter, 0.3f}}))
      for (int shift = 0; shift < 32; shift += 8)
        h = (h ^ (std::bit_cast<uint32_t>(v) >> shift & 0xff)) * 0x100000001b3;
    EXPECT_EQ(h, pin.hash) << format("{} {}: 0x{:016x}", pin.model, pin.scale, h);
  }
}

TEST(Lora, WhatIsNoAdapterOfTheModelIsRefused) {
  const std::string path = golden_dir() + "/arch/llama-gqa.gguf";
  auto refused = [&](const GgufWriter& w, Code code, std::initializer_list<const char*> words) {
    const std::string file = temporary_path("wrong.gguf");
    EXPECT_TRUE(write_file(file, w.build()));
    ModelSource model = open_file(path);
    const auto ok = add_lora(model, {file, 1});
    ASSERT_FALSE(ok);
    EXPECT_EQ(ok.error().code, code) << ok.error().message;
    for (const char* word : words)
      EXPECT_NE(ok.error().message.find(word), std::string::npos) << word << " in: " << ok.error().message;
  };
  auto adapter = [](const char* arch, const char* tensor) {
    GgufWriter w;
    w.string("general.type", "adapter").string("adapter.type", "lora").string("general.architecture", arch);
    w.tensor(tensor, {4, 2}, 0, std::string(32, '\0'));
    return w;
  };
  refused(GgufWriter().string("general.architecture", "llama"), Code::Usage,
          {"general.type", "not a LoRA adapter"});
  refused(adapter("qwen2", "blk.0.attn_q.weight.lora_a"), Code::Usage, {"'qwen2'", "'llama'"});
  refused(adapter("llama", "blk.0.attn_q.weight"), Code::Unsupported, {"lora_a", "blk.0.attn_q.weight"});
  refused(adapter("llama", "blk.77.attn_q.weight.lora_a"), Code::Malformed,
          {"blk.77.attn_q", "does not have"});
  refused(adapter("llama", "blk.0.attn_q.weight.lora_a").f32("adapter.lora.alpha", INFINITY), Code::Malformed,
          {"alpha"});
  refused(adapter("llama", "blk.0.attn_q.weight.lora_a").u32("adapter.alora.invocation_tokens", 5),
          Code::Unsupported, {"aLoRA"});
  // The tensors' shapes are looked at where the model is recorded.
  const std::string file = temporary_path("misshapen.gguf");
  EXPECT_TRUE(write_file(file, adapter("llama", "blk.0.attn_q.weight.lora_a").build()));
  ModelSource model = open_file(path);
  ASSERT_TRUE(add_lora(model, {file, 1}));
  const auto cpu = open_one("cpu", 0, "threads=1");
  const auto plan = make_model_plan(model, *cpu, {});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("blk.0.attn_q.weight.lora_"), std::string::npos)
      << plan.error().message;
}

}  // namespace
}  // namespace gimbal::test
