// LoRA adapters: a model with one beside it against the same model with the adapter added to its weights, and
// adapters that do not belong to it.
#include "model/lora.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/file.h"
#include "model/arch.h"
#include "support/gguf_writer.h"
#include "support/golden.h"
#include "support/placed.h"
#include "support/schedules.h"

namespace gimbal::test {
namespace {

constexpr int kRank = 3;
constexpr float kAlpha = 6, kScale = 0.7f;

// A matrix of a layer that is multiplied with something: not a norm, not taps. In f32, so that the merged one
// is exact.
bool adaptable(const GgufTensor& t) {
  if (t.type != DType::F32) return false;
  for (const char* name :
       {"attn_q.", "attn_v.", "attn_qkv.", "attn_output.", "ffn_up", "ffn_down", "ssm_in.", "ssm_out."})
    if (t.rank >= 2 && t.name.find(name) != t.name.npos && t.name.ends_with(".weight")) return true;
  return false;
}

struct Adapted {
  std::string adapter, merged;  // paths
};

// An adapter with random numbers, and a copy of the model with W + alpha / rank * kScale * B A.
Adapted make(const std::string& path) {
  const Gguf model = open_file(path);
  std::string bytes = *read_file(path);
  GgufWriter w;
  w.string("general.type", "adapter").string("adapter.type", "lora");
  w.string("general.architecture", *model.string("general.architecture"));
  w.f32("adapter.lora.alpha", kAlpha);
  std::mt19937 random(7);
  auto numbers = [&](int64_t n) {
    std::vector<float> all(static_cast<size_t>(n));
    for (float& x : all) x = (float(random() % 2001) - 1000) / 4000;
    return all;
  };
  auto put = [&](const std::string& name, std::vector<uint64_t> dims, int64_t experts,
                 const std::vector<float>& values) {
    if (experts > 1) dims.push_back(uint64_t(experts));
    w.tensor(name, dims, 0, std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4));
  };
  for (const GgufTensor& t : model.tensors()) {
    if (!adaptable(t)) continue;
    const int64_t k = t.dim[0], n = t.dim[1], e = t.dim[2];
    const auto a = numbers(k * kRank * e), b = numbers(kRank * n * e);
    put(std::string(t.name) + ".lora_a", {uint64_t(k), kRank}, e, a);
    put(std::string(t.name) + ".lora_b", {kRank, uint64_t(n)}, e, b);
    for (int64_t i = 0; i < e; i++)
      for (int64_t row = 0; row < n; row++)
        for (int64_t column = 0; column < k; column++) {
          char* at = bytes.data() + t.offset + size_t(((i * n + row) * k + column) * 4);
          float x;
          std::memcpy(&x, at, 4);
          double sum = 0;
          for (int64_t r = 0; r < kRank; r++)
            sum += double(a[size_t((i * kRank + r) * k + column)]) * b[size_t((i * n + row) * kRank + r)];
          x = float(x + kScale * kAlpha / kRank * sum);
          std::memcpy(at, &x, 4);
        }
  }
  const Adapted made{temporary_path("adapter.gguf"), temporary_path("merged.gguf")};
  EXPECT_TRUE(write_file(made.adapter, w.build()));
  EXPECT_TRUE(write_file(made.merged, bytes));
  return made;
}

std::vector<float> logits(const std::string& path, const std::vector<Lora>& lora, size_t split = 0) {
  static const auto cpu = open_one("cpu", 0, "threads=2");
  Gguf file = open_file(path);
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
  return logits_of(**m, any_tokens(50, 500), split);
}

double farthest(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); i++)
    most = std::max(most, std::fabs(double(a[i]) - b[i]));
  return most;
}

TEST(Lora, IsTheModelWithTheAdapterAddedToItsWeights) {
  // Plain; experts; a joined matrix with a bias; parts of a matrix.
  for (const char* name : {"arch/llama-gqa", "more/arch/lfm2moe", "more/arch/bloom", "more/arch/mamba2"}) {
    SCOPED_TRACE(name);
    const std::string path = golden_dir() + "/" + name + ".gguf";
    const Adapted made = make(path);
    const auto alone = logits(path, {}), merged = logits(made.merged, {}),
               beside = logits(path, {{made.adapter, kScale}});
    EXPECT_GT(farthest(alone, merged), 0.5) << "the adapter does something";
    EXPECT_LT(farthest(beside, merged), 2e-3);
    std::printf("%-24s farthest logit %.1e\n", name, farthest(beside, merged));
    EXPECT_EQ(bits_differ(beside, logits(path, {{made.adapter, kScale}}, 7)), "") << "for any split";
    // Two halves are a whole.
    const auto halves = logits(path, {{made.adapter, kScale / 2}, {made.adapter, kScale / 2}});
    EXPECT_LT(farthest(halves, merged), 2e-3);
  }
}

TEST(Lora, WhatIsNoAdapterOfTheModelIsRefused) {
  const std::string path = golden_dir() + "/arch/llama-gqa.gguf";
  auto refused = [&](const GgufWriter& w, Code code, std::initializer_list<const char*> words) {
    const std::string file = temporary_path("wrong.gguf");
    EXPECT_TRUE(write_file(file, w.build()));
    Gguf model = open_file(path);
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
          {"general.type", "no LoRA adapter"});
  refused(adapter("qwen2", "blk.0.attn_q.weight.lora_a"), Code::Usage, {"'qwen2'", "'llama'"});
  refused(adapter("llama", "blk.0.attn_q.weight"), Code::Unsupported, {"lora_a", "blk.0.attn_q.weight"});
  refused(adapter("llama", "blk.77.attn_q.weight.lora_a"), Code::Malformed,
          {"blk.77.attn_q", "does not have"});
  refused(adapter("llama", "blk.0.attn_q.weight.lora_a").f32("adapter.lora.alpha", INFINITY), Code::Malformed,
          {"alpha"});
  // The tensors' shapes are looked at where the model is recorded.
  const std::string file = temporary_path("misshapen.gguf");
  EXPECT_TRUE(write_file(file, adapter("llama", "blk.0.attn_q.weight.lora_a").build()));
  Gguf model = open_file(path);
  ASSERT_TRUE(add_lora(model, {file, 1}));
  const auto cpu = open_one("cpu", 0, "threads=1");
  const auto plan = make_model_plan(model, *cpu, {});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("blk.0.attn_q.weight.lora_"), std::string::npos)
      << plan.error().message;
}

}  // namespace
}  // namespace gimbal::test
