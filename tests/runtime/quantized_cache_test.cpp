// Quantized KV caches (Q8_0 to IQ4_NL) in a whole model: their memory, the models that refuse them, and the
// change of the logits. The numbers of single ops are kernels_test's business, the bits same_bits_test's.
//
// No golden file was made with a quantized cache, so the distance from the f32 cache is held against a figure
// derived from the rounding: to first order, logits move in proportion to the error of the numbers in the
// cache. So a format may move them as many times as far as an f16 cache does as its rounding is coarser than
// that of halves, up to a quarter more or less (a smaller distance would mean that the cache is not used).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "base/format.h"
#include "files/gguf.h"
#include "runtime/memory_check.h"
#include "runtime/sampler.h"
#include "support/engine.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

constexpr DType kQuantized[] = {DType::Q8_0, DType::Q5_0, DType::Q4_1, DType::Q4_0, DType::IQ4_NL};

// Models with heads of whole blocks and float weights, which add no rounding of activations of their own.
const char* const kFloatModels[] = {"quant/q-f16", "arch/llama31-ropefreqs"};  // heads of 64, of 32

Engine open(const std::string& model, DType cache, int sequences = 1) {
  EngineOptions o;
  o.run.cache_type = cache, o.run.context = 512, o.run.logit_rows = 64, o.run.sequences = sequences;
  auto e = open_engine(golden_dir() + "/" + model + ".gguf", o);
  EXPECT_TRUE(e) << e.error().message;
  return std::move(*e);
}

// The root of the mean square of what a format rounds off, of normally distributed numbers of variance 1, by
// the formats' definitions: q8_0 has 127 steps up to the largest of 32, q4_0 has 8 (q5_0: 16) steps down to
// it and one less the other way, q4_1 has 15 steps from the smallest to the largest, iq4_nl has the levels of
// its table, -127 of them the largest, halves have steps of 2^-11 of the next lower power of two.
double level_of(double share) {
  constexpr double kLevels[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  double nearest = kLevels[0];
  for (double level : kLevels)
    if (std::fabs(share - level) < std::fabs(share - nearest)) nearest = level;
  return nearest;
}
double rounding_of(DType type) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  double squares = 0;
  constexpr int kBlocks = 4000;
  for (int b = 0; b < kBlocks; b++) {
    double x[32], extreme = 0;
    for (double& v : x) {
      v = normal(random);
      if (std::fabs(v) > std::fabs(extreme)) extreme = v;
    }
    const auto [low, high] = std::minmax_element(x, x + 32);
    double fitted = 0,
           weights = 0;  // of iq4_nl: the step that fits the levels, large values before small ones
    for (double v : x) {
      const double level = level_of(v / (extreme / -127));
      fitted += v * v * v * level, weights += v * v * level * level;
    }
    for (double v : x) {
      const double half = type == DType::Q5_0 ? 16 : 8;
      double step = extreme / 127, least = 0;
      if (type == DType::Q4_0 || type == DType::Q5_0) step = extreme / -half;
      if (type == DType::Q4_1) step = (*high - *low) / 15, least = *low;
      if (type == DType::F16) step = std::ldexp(1.0, std::ilogb(v) - 10);
      double code = std::nearbyint((v - least) / step);
      if (type == DType::Q4_0 || type == DType::Q5_0) code = std::clamp(code, -half, half - 1);
      if (type == DType::IQ4_NL) step = fitted / weights, code = level_of(v / (extreme / -127));
      squares += std::pow(v - least - code * step, 2);
    }
  }
  return std::sqrt(squares / (32 * kBlocks));
}

struct Distance {
  double mean = 0, most = 0;
};
Distance distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  Distance d;
  for (size_t i = 0; i < a.size(); i++) {
    const double e = std::fabs(double(a[i]) - b[i]);
    d.mean += e / double(a.size()), d.most = std::isfinite(e) ? std::max(d.most, e) : INFINITY;
  }
  return d;
}

TEST(QuantizedCache, MovesTheLogitsAsFarAsItsRoundingSays) {
  for (const char* model : kFloatModels) {
    const auto golden = read_json(golden_dir() + "/" + model + ".json");
    // All positions of all golden prompts and their continuations, under each cache.
    auto logits = [&](Engine& e) {
      std::vector<float> all;
      for (const auto& c : golden["cases"]) {
        std::vector<int32_t> tokens = c["tokens"];
        if (c.contains("greedy"))
          for (int32_t t : c["greedy"]) tokens.push_back(t);
        const std::vector<float> rows = e.all_logits(tokens);
        all.insert(all.end(), rows.begin(), rows.end());
      }
      return all;
    };
    Engine f32 = open(model, DType::F32), f16 = open(model, DType::F16);
    const std::vector<float> want = logits(f32);
    const Distance half = distance(logits(f16), want);
    for (DType cache : kQuantized) {
      Engine e = open(model, cache);
      const Distance d = distance(logits(e), want);
      const double share = d.mean / half.mean / (rounding_of(cache) / rounding_of(DType::F16));
      std::printf("%-24s %s cache: mean %.1e max %.1e from f32 (f16: %.1e); %.2f of what the rounding says\n",
                  model, info(cache).name, d.mean, d.most, half.mean, share);
      EXPECT_GT(share, 0.8) << model << " " << info(cache).name;
      EXPECT_LT(share, 1.25) << model << " " << info(cache).name;
    }
  }
}

// The rule of the reference data: the token is the golden one wherever its lead over the second is larger
// than four times the mean distance and the largest one that was measured.
TEST(QuantizedCache, GreedyTokensAreTheGoldenOnesOutsideTies) {
  for (const char* model : kFloatModels)
    for (DType cache : kQuantized) {
      const auto golden = read_json(golden_dir() + "/" + model + ".json");
      const size_t vocabulary = golden["n_vocab"];
      Engine f32 = open(model, DType::F32), e = open(model, cache);
      int steps = 0, wrong = 0;
      double lead = 0;
      Distance far;
      for (const auto& c : golden["cases"]) {
        if (!c.contains("greedy")) continue;
        const std::vector<int32_t> prompt = c["tokens"], greedy = c["greedy"];
        const std::vector<double> margins = c["greedy_margins"];
        std::vector<int32_t> history = prompt;
        history.insert(history.end(), greedy.begin(), greedy.end() - 1);
        const std::vector<float> rows = e.all_logits(history);
        const Distance d = distance(rows, f32.all_logits(history));
        far.mean = std::max(far.mean, d.mean), far.most = std::max(far.most, d.most);
        for (size_t s = 0; s < greedy.size(); s++, steps++) {
          const float* row = &rows[(prompt.size() - 1 + s) * vocabulary];
          if (std::max_element(row, row + vocabulary) - row == greedy[s]) continue;
          wrong++, lead = std::max(lead, margins[s]);
        }
      }
      std::printf("%-24s %s cache: greedy %d of %d, largest lead lost %.3f\n", model, info(cache).name,
                  steps - wrong, steps, lead);
      EXPECT_GT(steps, 0);
      EXPECT_LE(lead, std::max(4 * far.mean, far.most)) << model << " " << info(cache).name;
      if (cache == DType::Q8_0) { EXPECT_LE(wrong, steps / 20) << model; }
    }
}

TEST(QuantizedCache, TakesExactlyTheBytesOfItsBlocks) {
  const Config c = open("quant/q-f16", DType::F16).model->config();
  const auto bytes = [&](DType cache) {
    return open("quant/q-f16", cache, 2).model->plan().stages[0].memory.cache;
  };
  // Keys and values of two sequences of 512 positions.
  const uint64_t values = uint64_t(2 * c.layers) * 2 * 512 * uint64_t(c.kv_heads * c.head_dim);
  EXPECT_EQ(c.head_dim, 64);
  EXPECT_EQ(bytes(DType::F16), values * 2);
  EXPECT_EQ(bytes(DType::Q8_0), values / 32 * 34);
  EXPECT_EQ(bytes(DType::Q5_0), values / 32 * 22);
  EXPECT_EQ(bytes(DType::Q4_1), values / 32 * 20);
  EXPECT_EQ(bytes(DType::Q4_0), values / 32 * 18);
  EXPECT_EQ(bytes(DType::IQ4_NL), values / 32 * 18);
}

TEST(QuantizedCache, IsRefusedForHeadsOfNoWholeBlocksBeforeAnythingIsLoaded) {
  auto file = open_gguf(golden_dir() + "/stories/stories260K-q8_0.gguf");
  auto device = open_device({"cpu", 0, true, "threads=1"});
  ASSERT_TRUE(file && device);
  RunOptions o;
  for (DType cache :
       {DType::Q8_0, DType::Q5_0, DType::Q4_1, DType::Q4_0, DType::IQ4_NL, DType::Q5_1, DType::I32}) {
    o.cache_type = cache;
    auto b = make_model_plan(*file, *device->device, o);
    ASSERT_FALSE(b);
    EXPECT_EQ(b.error().code, Code::Usage);
    const bool known = cache != DType::Q5_1 && cache != DType::I32;
    EXPECT_EQ(
        b.error().message,
        known ? format("'cache_type' {} stores blocks of 32 values, and the attention heads of this model "
                       "have 8 values: no whole number of blocks",
                       info(cache).name)
              : format("'cache_type' {} is not a format for a KV cache", info(cache).name));
    EXPECT_EQ(b.error().remedy, "choose one of: f32, f16, bf16");
  }
}

TEST(QuantizedCache, IsSuggestedWhereMemoryIsShortAndHeadsAllowIt) {
  auto device = open_device({"cpu", 0, true, "threads=1"});
  ASSERT_TRUE(device);
  auto advice = [&](const std::string& model, DType cache) {
    auto file = open_gguf(golden_dir() + "/" + model + ".gguf");
    EXPECT_TRUE(file);
    RunOptions o;
    o.cache_type = cache, o.context = 2048;
    auto b = make_model_plan(*file, *device->device, o);
    EXPECT_TRUE(b) << b.error().message;
    b->stages[0].memory.free = b->stages[0].memory.total() - 1;
    auto no = check_memory(*file, *b);
    EXPECT_FALSE(no);
    for (const Change& c : no.error().changes)
      if (c.field == std::string("cache_type")) return c.value;
    return std::string("none");
  };
  EXPECT_EQ(advice("quant/q-f16", DType::F32), "f16");
  EXPECT_EQ(advice("quant/q-f16", DType::F16), "q8_0");
  EXPECT_EQ(advice("quant/q-f16", DType::Q8_0), "none") << "q4_0 costs accuracy";
  EXPECT_EQ(advice("stories/stories260K-q8_0", DType::F16), "none") << "heads of 8 values";
}

// Sequences that are written in turns do not see each other, and a sequence alone gives the same bits.
TEST(QuantizedCache, SequencesKeepApart) {
  std::vector<int32_t> tokens[2];
  for (int i = 0; i < 90; i++) tokens[0].push_back(3 + i * 7 % 500), tokens[1].push_back(3 + i * 11 % 500);
  for (DType cache : kQuantized) {
    Engine e = open("quant/q-q8_0", cache, 2);
    auto a = Session::create(*e.model), b = Session::create(*e.model);
    ASSERT_TRUE(a && b);
    std::vector<float> got[2];
    for (int at = 0; at < 90; at += 9)
      for (int s = 0; s < 2; s++)
        ASSERT_TRUE((s ? *b : *a)
                        ->advance(std::span(tokens[s]).subspan(size_t(at), 9), Session::Wanted::All,
                                  [&](size_t, std::span<const float> row) {
                                    got[s].insert(got[s].end(), row.begin(), row.end());
                                  }));
    for (int s = 0; s < 2; s++) {
      Engine alone = open("quant/q-q8_0", cache);
      EXPECT_TRUE(got[s] == alone.all_logits(tokens[s])) << info(cache).name << " sequence " << s;
    }
  }
}

// "Never garbage": NaN in what is written to a cache must reach the sampler, on every variant.
TEST(QuantizedCache, DoesNotHideWhatIsNotANumber) {
  const std::string path = golden_dir() + "/quant/q-f16.gguf";
  const std::string good = *read_file(path);
  auto file = open_gguf(path);
  ASSERT_TRUE(file);
  for (const char* name : {"blk.0.attn_k.weight", "blk.0.attn_v.weight"}) {
    const StoredTensor* t = file->tensors().find(name);
    ASSERT_TRUE(t);
    ASSERT_EQ(t->type, DType::F16);
    std::string bad = good;
    bad[t->offset + 1] = bad[t->offset] = char(0xff);  // one value of one row, so of one block
    const std::string broken = temporary_path("broken.gguf");
    ASSERT_TRUE(write_file(broken, bad));
    for (DType cache : kQuantized)
      for (const std::string& variant : cpu_variants().usable) {
        EngineOptions o;
        o.device = "threads=1\nvariant=" + variant, o.run.cache_type = cache, o.run.context = 64;
        auto e = open_engine(broken, o);
        ASSERT_TRUE(e) << e.error().message;
        Sampler sampler(SamplerSettings{});
        EXPECT_FALSE(sampler.pick(e->logits({1, 403, 407}, {2}), {}))
            << name << ", " << info(cache).name << " cache, " << variant;
      }
  }
}

}  // namespace
}  // namespace gimbal::test
