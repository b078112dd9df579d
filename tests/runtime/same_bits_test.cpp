// The design's first law: the logits are the same bits on every CPU variant, for any number of threads, any
// batch size and any split of the prompt. Every promised weight format and cache format is held to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <thread>

#include "base/file.h"
#include "files/gguf.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/tiny_llama.h"

namespace gimbal::test {
namespace {

std::vector<int32_t> some_tokens(int n, int vocabulary) {
  std::vector<int32_t> t;
  uint32_t x = 12345;
  for (int i = 0; i < n; i++) t.push_back(int32_t((x = x * 1664525u + 1013904223u) >> 8) % vocabulary);
  return t;
}

// Where two rows of logits first differ, for a message.
std::string first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return "sizes " + std::to_string(a.size()) + " and " + std::to_string(b.size());
  for (size_t i = 0; i < a.size(); i++)
    if (std::memcmp(&a[i], &b[i], 4) != 0)
      return "at " + std::to_string(i) + ": " + std::to_string(a[i]) + " and " + std::to_string(b[i]);
  return "";
}

std::vector<float> run(const std::string& model, const std::string& device, DType cache, int batch, int split,
                       const std::vector<int32_t>& tokens, CacheRotation rotation = CacheRotation::Auto) {
  EngineOptions o;
  o.run.cache_rotation = rotation;
  o.device = device, o.run.cache_type = cache, o.run.logit_rows = std::max(batch, 256), o.run.batch = batch;
  o.run.context = tokens.size() <= 256 ? 256 : 512;  // gpt2's learned positions end at 256
  auto e = open_engine(model, o);
  if (!e) {
    ADD_FAILURE() << model << ": " << e.error().message;
    return {};
  }
  return e->all_logits(tokens, split);
}

bool is_one_of(const std::string& path, std::span<const char* const> names) {
  return std::any_of(names.begin(), names.end(), [&](auto n) { return path.find(n) != path.npos; });
}

// One for each way in which weights are multiplied: row by row, and on every instruction set.
constexpr const char* kClasses[] = {"wide-", "q-q4_0", "q-q6_k", "bitnet-b158-i2s"};

// Every model of the reference data that this version computes: each weight format is held to the law.
const std::vector<std::string>& models() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> found;
    for (const char* folder : {"stories", "quant", "arch", "more/arch"})
      for (const std::string& path : golden_files(folder, ".gguf")) {
        auto engine = open_engine(path, {});
        if (engine) found.push_back(path);
        else EXPECT_EQ(engine.error().code, Code::Unsupported) << engine.error().message;
      }
    EXPECT_GE(found.size(), 19u);
    if (fewer_cases())
      std::erase_if(found, [](const std::string& path) { return !is_one_of(path, kClasses); });
    std::printf("%zu models\n", found.size());
    return found;
  }();
  return all;
}

TEST(SameBits, OnEveryVariant) {
  const Variants variants = cpu_variants();
  std::string names;
  for (auto& v : variants.usable) names += " " + v;
  std::printf("CPU variants: ran%s\n", names.c_str());
  for (auto& r : variants.refused) std::printf("  not run: %s\n", r.c_str());
  ASSERT_GE(variants.usable.size(), 1u);
  EXPECT_EQ(variants.usable[0], "baseline");
  const auto tokens = some_tokens(70, 512);  // more than one page of 64 positions
  for (const std::string& model : models())
    for (DType cache : {DType::F16, DType::F32, DType::BF16}) {
      // The cache's format does not meet the weights': all of them once are enough.
      if (cache != DType::F16 && model != models()[0]) continue;
      const auto want = run(model, "threads=1\nvariant=baseline", cache, 256, 0, tokens);
      ASSERT_EQ(want.size(), tokens.size() * 512);
      for (const std::string& v : variants.usable) {
        const auto got = run(model, "threads=1\nvariant=" + v, cache, 256, 0, tokens);
        EXPECT_EQ(first_difference(want, got), "") << model << " " << v << " " << info(cache).name;
      }
    }
}

TEST(SameBits, ForAnyNumberOfThreads) {
  const auto tokens = some_tokens(100, 512);
  for (const std::string& model : models()) {
    const auto want = run(model, "threads=1", DType::F16, 256, 0, tokens);
    for (int threads : {2, 3, 5})
      EXPECT_EQ(first_difference(
                    want, run(model, "threads=" + std::to_string(threads), DType::F16, 256, 0, tokens)),
                "")
          << model << " " << threads << " threads";
  }
}

TEST(SameBits, ForAnyBatchAndSplit) {
  const auto tokens = some_tokens(130, 512);
  for (const std::string& model : models()) {
    const auto want = run(model, "threads=2", DType::F16, 256, 0, tokens);
    // All sizes with one model of each class; with the others, those that differ most.
    const bool all = is_one_of(model, kClasses);
    const std::vector<int> batches = all ? std::vector{1, 2, 3, 5, 16, 64, 100} : std::vector{1, 3, 16, 100};
    const std::vector<int> splits = all ? std::vector{1, 7, 63, 64, 65} : std::vector{7, 63, 64, 65};
    for (int batch : batches)
      EXPECT_EQ(first_difference(want, run(model, "threads=2", DType::F16, batch, 0, tokens)), "")
          << model << " batch " << batch;
    for (int split : splits)
      EXPECT_EQ(first_difference(want, run(model, "threads=2", DType::F16, 32, split, tokens)), "")
          << model << " split " << split;
  }
}

// A llama in floats whose matrices have more columns than a kernel stages at a time: the collection has none.
std::string wide_model(const char* format, uint32_t type) {
  const uint32_t width = 320, inner = 520, heads = 4, kv = 160, vocabulary = 512;
  TinyLlama m;
  m.u32("embedding_length", width), m.u32("feed_forward_length", inner), m.u32("context_length", 512);
  m.u32("attention.head_count", heads), m.u32("attention.head_count_kv", heads / 2);
  m.tensors.clear();
  auto add = [&](const std::string& name, std::vector<uint64_t> dims) {
    m.tensors[name + ".weight"] = {dims, dims.size() == 2 ? type : 0};
  };
  add("token_embd", {width, vocabulary}), add("output_norm", {width});
  add("blk.0.attn_norm", {width}), add("blk.0.ffn_norm", {width});
  add("blk.0.attn_q", {width, width}), add("blk.0.attn_output", {width, width});
  add("blk.0.attn_k", {width, kv}), add("blk.0.attn_v", {width, kv});
  add("blk.0.ffn_gate", {width, inner}), add("blk.0.ffn_up", {width, inner});
  add("blk.0.ffn_down", {inner, width});
  m.weight = [](uint64_t i) {
    return 0.1f * float(int32_t(uint32_t(i + 1) * 2654435761u)) / float(INT32_MAX);
  };
  const std::string path = temporary_path("wide-" + std::string(format) + ".gguf");
  EXPECT_TRUE(write_file(path, m.build()));
  return path;
}

// A kernel stages 256 columns at a time, and of the rows of a prompt 192 of codes or 96 of floats. So a step
// of as many rows as --batch has by default goes through a matrix of 512 columns in several passes each way.
TEST(SameBits, ForPromptsLongerThanAKernelStages) {
  const auto tokens = some_tokens(300, 512);
  std::vector<std::string> wide = {wide_model("f32", 0), wide_model("f16", 1), wide_model("bf16", 30)};
  for (const std::string& path : models()) {
    const ModelSource file = *open_gguf(path);
    for (const StoredTensor& t : file.tensors())
      if (t.name == "blk.0.ffn_down.weight" && t.dim[0] > 256) wide.push_back(path);
  }
  int classes = 0;
  for (const std::string& model : wide) {
    const auto want = run(model, "threads=2", DType::F16, 32, 0, tokens);
    ASSERT_EQ(want.size(), tokens.size() * 512);
    EXPECT_EQ(first_difference(want, run(model, "threads=2", DType::F16, 256, 0, tokens)), "")
        << model << " batch 256";
    if (!is_one_of(model, kClasses)) continue;
    classes++;
    EXPECT_EQ(first_difference(want, run(model, "threads=2", DType::F16, 1, 0, tokens)), "")
        << model << " batch 1";
    for (const std::string& v : cpu_variants().usable)
      EXPECT_EQ(first_difference(want, run(model, "threads=2\nvariant=" + v, DType::F16, 256, 0, tokens)), "")
          << model << " batch 256, " << v;
  }
  EXPECT_EQ(classes, 6) << "models that are missing, or have become narrow";
}

// A context of 512 positions, filled to the last one.
TEST(SameBits, ForAPromptThatFillsTheContext) {
  const auto tokens = some_tokens(512, 512);
  for (const char* name : {"quant/q-q8_0", "quant/q-q6_k", "arch/bitnet-b158-i2s"}) {
    const std::string model = golden_dir() + "/" + name + ".gguf";
    const auto want = run(model, "threads=2", DType::F16, 32, 0, tokens);
    ASSERT_EQ(want.size(), tokens.size() * 512);
    for (int batch : {1, 256, 512})
      EXPECT_EQ(first_difference(want, run(model, "threads=2", DType::F16, batch, 0, tokens)), "")
          << model << " batch " << batch;
    EXPECT_EQ(first_difference(want, run(model, "threads=2", DType::F16, 256, 200, tokens)), "") << model;
  }
}

// Quantized caches need heads of whole blocks: here of 64 and of 32 values, four and two of them to a KV
// head.
TEST(SameBits, WithAQuantizedCache) {
  const auto tokens = some_tokens(130, 512);
  size_t n = 0;
  for (const char* model : {"quant/q-q8_0", "arch/llama31-ropefreqs"})
    for (const auto& [cache, rotation] : {std::pair(DType::Q8_0, CacheRotation::Off),
                                          {DType::Q8_0, CacheRotation::On},
                                          {DType::Q5_0, CacheRotation::Off},
                                          {DType::Q5_0, CacheRotation::On},
                                          {DType::Q4_1, CacheRotation::On},
                                          {DType::Q4_0, CacheRotation::Off},
                                          {DType::Q4_0, CacheRotation::On},
                                          {DType::IQ4_NL, CacheRotation::On}}) {
      if (fewer_cases() && n++ % 3) continue;
      const std::string path = golden_dir() + "/" + model + ".gguf";
      const auto want = run(path, "threads=1\nvariant=baseline", cache, 256, 0, tokens, rotation);
      ASSERT_EQ(want.size(), tokens.size() * 512);
      auto same = [&](const std::string& device, int batch, int split) {
        EXPECT_EQ(first_difference(want, run(path, device, cache, batch, split, tokens, rotation)), "")
            << model << ", " << cache_name(info(cache).name, rotation == CacheRotation::On) << " cache, "
            << device << ", batch " << batch << ", split " << split;
      };
      for (const std::string& v : cpu_variants().usable) same("threads=1\nvariant=" + v, 256, 0);
      for (int threads : {2, 3, 5}) same("threads=" + std::to_string(threads), 256, 0);
      for (int batch : {1, 3, 16, 100}) same("threads=2", batch, 0);
      for (int split : {1, 7, 63, 65}) same("threads=2", 32, split);
      EXPECT_NE(first_difference(want, run(path, "threads=1", DType::F16, 256, 0, tokens)), "")
          << "the cache is not used";
    }
}

TEST(SameBits, AfterRewinding) {
  const auto tokens = some_tokens(90, 512);
  EngineOptions o;
  o.run.context = 512, o.run.logit_rows = 256;
  auto e = open_engine(golden_dir() + "/stories/stories260K-q8_0.gguf", o);
  ASSERT_TRUE(e) << e.error().message;
  auto s = Session::create(*e->model);
  ASSERT_TRUE(s);
  auto all = [&](std::span<const int32_t> part) {
    std::vector<float> out;
    auto ok = (*s)->advance(part, Session::Wanted::All, [&](size_t, std::span<const float> r) {
      out.insert(out.end(), r.begin(), r.end());
    });
    EXPECT_TRUE(ok);
    return out;
  };
  const auto first = all(tokens);
  (*s)->rewind(40);
  EXPECT_EQ((*s)->position(), 40);
  EXPECT_EQ(first_difference(std::vector<float>(first.begin() + 40 * 512, first.end()),
                             all(std::span(tokens).subspan(40))),
            "");
}

}  // namespace
}  // namespace gimbal::test
