// Model files whose numbers lie: each is refused with words that name the file and the thing, quickly and
// without a large allocation. Its own executable, because it replaces operator new to see what is asked for.
#include "model/config.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "discovery/registry.h"
#include "files/gguf.h"
#include "model/arch.h"
#include "runtime/model_plan.h"
#include "support/operator_new.h"
#include "support/tiny_llama.h"

static std::atomic<size_t> largest_allocation;
static void allocating(size_t n) {
  size_t seen = largest_allocation;
  while (n > seen && !largest_allocation.compare_exchange_weak(seen, n)) {}
}

namespace gimbal {
namespace {

using namespace gimbal::test;

const Device& cpu() {
  static const std::unique_ptr<Device> device = std::move(open_device({"cpu", 0, true, "threads=1"})->device);
  return *device;
}

Result<ModelPlan> plan(const TinyLlama& spec, const RunOptions& options = {}) {
  static std::vector<std::string> kept;  // files outlive their plans
  static std::vector<std::unique_ptr<ModelSource>> files;
  kept.push_back(spec.build());
  auto file = parse_gguf(std::as_bytes(std::span(kept.back())), "hostile.gguf");
  if (!file) return file.error();
  files.push_back(std::make_unique<ModelSource>(std::move(*file)));
  largest_allocation = 0;
  return make_model_plan(*files.back(), cpu(), options);
}

TEST(Config, TheUnchangedFileIsAModel) {
  auto b = plan({});
  ASSERT_TRUE(b) << b.error().message;
  const Config& c = b->config;
  EXPECT_EQ(c.layers, 1);
  EXPECT_EQ(c.width, 8);
  EXPECT_EQ(c.heads, 2);
  EXPECT_EQ(c.kv_heads, 1);
  EXPECT_EQ(c.head_dim, 4);
  EXPECT_EQ(c.vocabulary, 5);
  EXPECT_EQ(c.context, 64);
  EXPECT_EQ(c.norm_epsilon, 1e-5f);
  EXPECT_EQ(c.rotated, 4);
}

struct Lie {
  const char* about;
  std::function<void(TinyLlama&)> change;
  Code code;
  std::vector<const char*> words;  // in the message, beside the file's name
};

void refused(const std::vector<Lie>& lies) {
  for (const Lie& lie : lies) {
    SCOPED_TRACE(lie.about);
    TinyLlama spec;
    lie.change(spec);
    auto b = plan(spec);
    EXPECT_LE(largest_allocation, size_t(1) << 20);
    if (b) {
      ADD_FAILURE() << "taken for a model";
      continue;
    }
    EXPECT_EQ(b.error().code, lie.code) << b.error().message;
    EXPECT_NE(b.error().message.find("hostile.gguf"), std::string::npos) << b.error().message;
    for (const char* word : lie.words)
      EXPECT_NE(b.error().message.find(word), std::string::npos) << word << " in: " << b.error().message;
  }
}

TEST(Config, CountsThatLie) {
  constexpr uint32_t most = std::numeric_limits<uint32_t>::max();
  std::vector<Lie> lies;
  for (const char* key :
       {"block_count", "embedding_length", "feed_forward_length", "attention.head_count",
        "attention.head_count_kv", "context_length", "attention.key_length", "rope.dimension_count"}) {
    lies.push_back({key, [=](TinyLlama& s) { s.u32(key, 0); }, Code::Malformed, {key, "found 0"}});
    lies.push_back({key, [=](TinyLlama& s) { s.u32(key, most); }, Code::Malformed, {key, "4294967295"}});
    lies.push_back(
        {key, [=](TinyLlama& s) { s.u32(key, (1 << 24) + 1); }, Code::Malformed, {key, "16777217"}});
    lies.push_back({key, [=](TinyLlama& s) { s.set(key, kI32, -4); }, Code::Malformed, {key, "-4"}});
    lies.push_back({key, [=](TinyLlama& s) { s.f32(key, 2.5f); }, Code::Malformed, {key, "2.5"}});
    lies.push_back({key,
                    [=](TinyLlama& s) { s.text(std::string("llama.") + key, "8"); },
                    Code::Malformed,
                    {key, "kind"}});
    lies.push_back({key, [=](TinyLlama& s) { s.set(key, kU64, uint64_t(1) << 63); }, Code::Malformed, {key}});
  }
  for (const char* key :
       {"block_count", "embedding_length", "feed_forward_length", "attention.head_count", "context_length"})
    lies.push_back({key,
                    [=](TinyLlama& s) { s.keys.erase(std::string("llama.") + key); },
                    Code::Malformed,
                    {key, "nothing"}});
  // Also where a count may be missing, or 0.
  lies.push_back({"expert_count",
                  [](TinyLlama& s) { s.text("llama.expert_count", "8"); },
                  Code::Malformed,
                  {"expert_count", "kind"}});
  refused(lies);
}

TEST(Config, CountsThatDoNotGoTogether) {
  refused({
      {"more layers than tensors",
       [](TinyLlama& s) { s.u32("block_count", 1 << 24); },
       Code::Malformed,
       {"block_count", "16777216", "11 tensors"}},
      {"one layer too many",
       [](TinyLlama& s) { s.u32("block_count", 2); },
       Code::Malformed,
       {"blk.1.attn_norm.weight", "missing"}},
      {"heads do not divide",
       [](TinyLlama& s) { s.u32("attention.head_count", 3); },
       Code::Malformed,
       {"head_count", "3"}},
      {"more heads than values",
       [](TinyLlama& s) { s.u32("attention.head_count", 16); },
       Code::Malformed,
       {"head_count", "16"}},
      {"kv heads do not divide",
       [](TinyLlama& s) { s.u32("attention.head_count_kv", 3); },
       Code::Malformed,
       {"head_count_kv", "3"}},
      {"more kv heads than heads",
       [](TinyLlama& s) { s.u32("attention.head_count_kv", 4); },
       Code::Malformed,
       {"head_count_kv", "4"}},
      {"heads * head_dim is 2^32",
       [](TinyLlama& s) {
         s.u32("attention.head_count", 1 << 16), s.u32("embedding_length", 1 << 16),
             s.u32("attention.key_length", 1 << 16);
       },
       Code::Malformed,
       {"65536", "heads"}},
      {"heads * head_dim is 2^48",
       [](TinyLlama& s) { s.u32("attention.head_count", 1 << 24), s.u32("attention.key_length", 1 << 24); },
       Code::Malformed,
       {"16777216"}},
      {"a head of 2^24",
       [](TinyLlama& s) { s.u32("attention.head_count", 1), s.u32("attention.key_length", 1 << 24); },
       Code::Malformed,
       {"16777216"}},
      {"everything large",
       [](TinyLlama& s) {
         for (const char* k : {"embedding_length", "feed_forward_length", "context_length"})
           s.u32(k, 1 << 24);
         s.u32("attention.head_count", 1 << 12), s.u32("attention.head_count_kv", 1 << 12);
       },
       Code::Malformed,
       {"token_embd.weight", "16777216"}},
      {"the head differs from the tensors",
       [](TinyLlama& s) { s.u32("attention.key_length", 6); },
       Code::Malformed,
       {"attn_q.weight", "8 x 12"}},
      {"rotating more than a head",
       [](TinyLlama& s) { s.u32("rope.dimension_count", 6); },
       Code::Malformed,
       {"rope.dimension_count", "6", "4"}},
      {"rotating 2^24",
       [](TinyLlama& s) { s.u32("rope.dimension_count", 1 << 24); },
       Code::Malformed,
       {"rope.dimension_count"}},
      {"rotating an odd number",
       [](TinyLlama& s) { s.u32("rope.dimension_count", 3); },
       Code::Malformed,
       {"rope.dimension_count", "3", "even"}},
      {"more tokens than rows",
       [](TinyLlama& s) {
         std::string six = le<uint32_t>(kString) + le<uint64_t>(6);
         for (int i = 0; i < 6; i++) six += gguf_string("t");
         s.keys["tokenizer.ggml.tokens"] = {kArray, six};
       },
       Code::Malformed,
       {"6 tokens", "token_embd.weight", "5"}},
  });
}

TEST(Config, FloatsThatLie) {
  std::vector<Lie> lies;
  for (float bad : {NAN, INFINITY, -INFINITY, -1.f}) {
    for (const char* key : {"attention.layer_norm_rms_epsilon", "rope.freq_base"})
      lies.push_back({key, [=](TinyLlama& s) { s.f32(key, bad); }, Code::Malformed, {key}});
    for (const char* key : {"rope.scaling.factor", "rope.scale_linear"})
      lies.push_back({key, [=](TinyLlama& s) { s.f32(key, bad); }, Code::Malformed, {key}});
  }
  for (const char* key : {"attention.layer_norm_rms_epsilon", "rope.freq_base", "rope.scaling.factor"})
    lies.push_back({key,
                    [=](TinyLlama& s) { s.text(std::string("llama.") + key, "1"); },
                    Code::Malformed,
                    {key, "kind"}});
  lies.push_back({"epsilon beyond float",
                  [](TinyLlama& s) { s.set("attention.layer_norm_rms_epsilon", kF64, 1e300); },
                  Code::Malformed,
                  {"epsilon"}});
  lies.push_back(
      {"base 0", [](TinyLlama& s) { s.f32("rope.freq_base", 0); }, Code::Malformed, {"rope.freq_base"}});
  lies.push_back({"base so small that angles explode",
                  [](TinyLlama& s) { s.f32("rope.freq_base", 1e-30f); },
                  Code::Malformed,
                  {"base", "radians"}});
  lies.push_back({"factor 0",
                  [](TinyLlama& s) { s.f32("rope.scaling.factor", 0); },
                  Code::Malformed,
                  {"rope.scaling.factor"}});
  lies.push_back({"factor so small that angles explode",
                  [](TinyLlama& s) { s.f32("rope.scaling.factor", 1e-30f); },
                  Code::Malformed,
                  {"factor", "radians"}});
  lies.push_back({"unknown scaling",
                  [](TinyLlama& s) { s.text("llama.rope.scaling.type", "magic"); },
                  Code::Unsupported,
                  {"rope.scaling.type", "magic"}});
  auto yarn = [](auto change) {
    return [change](TinyLlama& s) {
      s.text("llama.rope.scaling.type", "yarn"), s.f32("rope.scaling.factor", 4);
      change(s);
    };
  };
  for (const char* key :
       {"rope.scaling.factor", "rope.scaling.original_context_length", "rope.scaling.attn_factor",
        "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow", "rope.scaling.yarn_log_multiplier"})
    for (float bad : {NAN, INFINITY, -1.f, 0.f})
      lies.push_back({key, yarn([=](TinyLlama& s) { s.f32(key, bad); }), Code::Malformed, {key, "positive"}});
  for (const char* key : {"yarn_ext_factor", "yarn_attn_factor"})
    lies.push_back({key,
                    yarn([=](TinyLlama& s) { s.f32("rope.scaling." + std::string(key), 0.5f); }),
                    Code::Unsupported,
                    {key, "computes 1 only"}});
  for (const std::vector<int32_t>& bad :
       {std::vector<int32_t>{1, 1}, {1, 1, 1, 1, 1}, {-1, 2, 1, 0}, {1, 1, 1 << 30, 0}})
    lies.push_back({"sections",
                    [=](TinyLlama& s) { s.counts("rope.dimension_sections", bad); },
                    Code::Malformed,
                    {"rope.dimension_sections", "3 or 4"}});
  lies.push_back({"sections of another kind",
                  [](TinyLlama& s) { s.u32("rope.dimension_sections", 1); },
                  Code::Malformed,
                  {"rope.dimension_sections"}});
  lies.push_back({"scaling type of another kind",
                  [](TinyLlama& s) { s.u32("rope.scaling.type", 1); },
                  Code::Malformed,
                  {"rope.scaling.type"}});
  refused(lies);
}

TEST(Config, TensorsThatLie) {
  refused({
      {"no tensors", [](TinyLlama& s) { s.tensors.clear(); }, Code::Malformed, {"tensors"}},
      {"no embedding",
       [](TinyLlama& s) { s.tensors.erase("token_embd.weight"); },
       Code::Malformed,
       {"token_embd.weight"}},
      {"an embedding of one dimension",
       [](TinyLlama& s) { s.tensors["token_embd.weight"].dims = {40}; },
       Code::Malformed,
       {"token_embd.weight"}},
      {"an embedding of three dimensions",
       [](TinyLlama& s) {
         s.tensors["token_embd.weight"].dims = {8, 5, 1};
       },
       Code::Malformed,
       {"token_embd.weight"}},
      {"an embedding of other rows",
       [](TinyLlama& s) {
         s.tensors["token_embd.weight"].dims = {4, 5};
       },
       Code::Malformed,
       {"token_embd.weight", "4 x 5", "8 x 5"}},
      {"an embedding of integers",
       [](TinyLlama& s) { s.tensors["token_embd.weight"].type = 26; },
       Code::Unsupported,
       {"token_embd", "i32"}},
      {"a matrix is missing",
       [](TinyLlama& s) { s.tensors.erase("blk.0.ffn_up.weight"); },
       Code::Malformed,
       {"blk.0.ffn_up.weight", "missing"}},
      {"a vector is missing",
       [](TinyLlama& s) { s.tensors.erase("output_norm.weight"); },
       Code::Malformed,
       {"output_norm.weight", "missing"}},
      {"a matrix lies on its side",
       [](TinyLlama& s) {
         s.tensors["blk.0.ffn_down.weight"].dims = {8, 12};
       },
       Code::Malformed,
       {"ffn_down.weight", "8 x 12", "12 x 8"}},
      {"a vector is a matrix",
       [](TinyLlama& s) {
         s.tensors["blk.0.attn_norm.weight"].dims = {8, 2};
       },
       Code::Malformed,
       {"attn_norm.weight", "8 x 2"}},
      {"a bias of another size",
       [](TinyLlama& s) { s.tensors["blk.0.attn_q.bias"].dims = {7}; },
       Code::Malformed,
       {"attn_q.bias", "7"}},
      {"a tensor nobody knows",
       [](TinyLlama& s) { s.tensors["blk.0.attn_sinks.weight"].dims = {2}; },
       Code::Unsupported,
       {"blk.0.attn_sinks.weight"}},
      {"a layer too many",
       [](TinyLlama& s) { s.tensors["blk.1.attn_norm.weight"].dims = {8}; },
       Code::Unsupported,
       {"blk.1.attn_norm.weight"}},
      {"rotary factors of another size",
       [](TinyLlama& s) { s.tensors["rope_freqs.weight"].dims = {3}; },
       Code::Malformed,
       {"rope_freqs.weight", "2"}},
  });
}

TEST(Config, ArchitecturesThatAreNotKnown) {
  refused({
      {"unknown",
       [](TinyLlama& s) { s.text("general.architecture", "llama9000"); },
       Code::Unsupported,
       {"llama9000", "is not supported"}},
      {"mistyped",
       [](TinyLlama& s) { s.text("general.architecture", "qwen-2"); },
       Code::Unsupported,
       {"'qwen-2'", "nearest", "'qwen2'"}},
      {"empty", [](TinyLlama& s) { s.text("general.architecture", ""); }, Code::Unsupported, {"''"}},
      {"missing",
       [](TinyLlama& s) { s.keys.erase("general.architecture"); },
       Code::Malformed,
       {"general.architecture"}},
      {"a number",
       [](TinyLlama& s) {
         s.keys["general.architecture"] = {kU32, le(7u)};
       },
       Code::Malformed,
       {"general.architecture"}},
      {"a mixture without experts",
       [](TinyLlama& s) { s.u32("expert_count", 4); },
       Code::Malformed,
       {"expert_used_count"}},
      {"values of another size",
       [](TinyLlama& s) { s.u32("attention.value_length", 8); },
       Code::Malformed,
       {"attn_v.weight", "8 x 8"}},
  });
}

TEST(Config, AFactorWithoutATypeScalesLinearly) {
  // Files older than the key of the type have only a factor, under one of two names.
  std::vector<float> plain(4), scaled(4);
  auto angles = [](const TinyLlama& spec, int64_t position, std::vector<float>& out) {
    auto b = plan(spec);
    ASSERT_TRUE(b) << b.error().message;
    const std::string bytes = spec.build();
    const auto file = parse_gguf(std::as_bytes(std::span(bytes)), "scaled.gguf");
    const auto made = RopeAngles::create(*file, "llama", b->config.rotated, b->config.rope_base);
    ASSERT_TRUE(made) << made.error().message;
    made->fill(position, out.data());
  };
  angles({}, 3, plain);
  for (const char* key : {"rope.scaling.factor", "rope.scale_linear"}) {
    TinyLlama spec;
    spec.f32(key, 4);
    angles(spec, 12, scaled);
    EXPECT_EQ(scaled, plain) << key;
    spec.text("llama.rope.scaling.type", "none");
    angles(spec, 3, scaled);
    EXPECT_EQ(scaled, plain) << "'none' turns the factor off";
  }
}

TEST(ModelPlan, OptionsOutOfRangeAreUsageErrors) {
  struct Bad {
    RunOptions o;
    const char* word;
  };
  auto with = [](auto change) {
    RunOptions o;
    change(o);
    return o;
  };
  for (const Bad& bad :
       {Bad{with([](auto& o) { o.context = -1; }), "'context'"},
        {with([](auto& o) { o.context = INT32_MAX; }), "'context'"},
        {with([](auto& o) { o.batch = 0; }), "'batch'"},
        {with([](auto& o) { o.batch = INT32_MAX; }), "'batch'"},
        {with([](auto& o) { o.sequences = 0; }), "sequences"},
        {with([](auto& o) { o.sequences = INT32_MAX; }), "sequences"},
        {with([](auto& o) { o.sequences = 65537, o.context = 1; }),
         "'sequences' must be from 1 to 65536, not 65537"},
        {with([](auto& o) { o.batch = 65537; }), "'batch' must be from 1 to 65536, not 65537"},
        {with([](auto& o) { o.sequences = 65536, o.context = 1 << 24; }), "sequences"},
        {with([](auto& o) { o.cache_type = DType::Q4_0; }), "heads of this model have 4"},
        {with([](auto& o) { o.cache_type = DType::Q4_K; }), "q4_k is not a format"}}) {
    auto b = plan({}, bad.o);
    ASSERT_FALSE(b) << bad.word;
    EXPECT_EQ(b.error().code, Code::Usage);
    EXPECT_NE(b.error().message.find(bad.word), std::string::npos) << b.error().message;
    EXPECT_LE(largest_allocation, size_t(1) << 20);
  }
}

// A batch has a row in front of the drafts.
TEST(ModelPlan, DraftsAreAsManyAsABatchHolds) {
  for (const auto& [batch, drafts] : {std::pair(9, 7), {8, 7}, {4, 3}, {2, 1}, {1, 0}}) {
    RunOptions o;
    o.context = 64, o.batch = batch, o.drafts = 7;
    auto b = plan({}, o);
    ASSERT_TRUE(b) << b.error().message;
    EXPECT_EQ(b->options.drafts, drafts) << batch;
    EXPECT_GE(b->options.logit_rows, 1 + drafts) << batch;
  }
}

TEST(ModelPlan, MostSequencesAndTheLargestBatchArePlanned) {
  RunOptions o;
  o.sequences = 65536, o.context = 1, o.batch = 65536;
  auto b = plan({}, o);
  ASSERT_TRUE(b) << b.error().message;
  EXPECT_EQ(b->options.sequences, 65536);
  EXPECT_EQ(b->options.batch, 65536);
}

TEST(ModelPlan, TheLargestContextsArePlannedWithoutBeingAllocated) {
  RunOptions o;
  o.context = 1 << 24, o.sequences = 16, o.cache_type = DType::F32;
  auto b = plan({}, o);
  ASSERT_TRUE(b) << b.error().message;
  EXPECT_LE(largest_allocation, size_t(1) << 20);
  // One layer, one kv head of 4: the keys alone are 2^24 * 16 * 4 floats.
  EXPECT_GE(b->stages[0].memory.cache, uint64_t(1) << 32);
  EXPECT_GE(b->stages[0].memory.total(), b->stages[0].memory.cache);
}

}  // namespace
}  // namespace gimbal
