// The estimate from dimensions against the exact plan of every model of the reference data, and against
// numbers worked out by hand.
#include "runtime/estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <set>

#include "support/golden.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

// The format of all matrices; nothing when they differ.
std::optional<DType> only_format(const ModelSource& file) {
  std::set<DType> all;
  for (const StoredTensor& t : file.tensors())
    if (t.dim[1] > 1) all.insert(t.type);
  return all.size() == 1 ? std::optional(*all.begin()) : std::nullopt;
}

TEST(Estimate, AgreesWithThePlanOfEveryModel) {
  const auto cpu = open_one("cpu", 0, "threads=1");
  int models = 0;
  double worst = 0;
  for (const char* folder : {"stories", "quant", "arch"})
    for (const std::string& path : golden_files(folder, ".gguf")) {
      const ModelSource file = open_file(path);
      const auto format = only_format(file);
      if (!format || path.find("iq") != path.npos) continue;  // laid out larger, as the header says
      // The estimate is of a dense decoder with three matrices in its feed-forward layer.
      const std::string arch(file.metadata().string("general.architecture").value_or(""));
      if ((arch != "llama" && arch != "qwen2" && !arch.starts_with("bitnet")) ||
          file.metadata().unsigned_integer(arch + ".expert_count").value_or(0) > 0)
        continue;
      for (auto [context, batch] : {std::pair(512, 64), {2048, 256}}) {
        RunOptions o;
        o.context = context, o.batch = batch;
        auto b = make_model_plan(file, *cpu, o);
        ASSERT_TRUE(b) << path << ": " << b.error().message;
        const Config& c = b->config;
        ModelDimensions d;
        d.layers = c.layers, d.embedding = c.width, d.heads = c.heads, d.kv_heads = c.kv_heads;
        d.head_dim = c.head_dim,
        d.ffn = int(*file.metadata().unsigned_integer(arch + ".feed_forward_length")),
        d.vocabulary = c.vocabulary;
        d.tied_output = !file.tensors().find("output.weight"), d.weights = *format;
        d.context = context, d.batch = batch;
        const MemoryEstimate e = estimate_inference_memory(d);
        const MemoryPlan& m = b->last().memory;
        const double off = std::fabs(double(e.total()) / double(m.total()) - 1);
        worst = std::max(worst, off);
        EXPECT_LT(off, 0.03) << path << ": " << e.total() << " and " << m.total() << "; weights " << e.weights
                             << " and " << m.weights << "; activations " << e.activations << " and "
                             << m.activations << "; step " << e.step << " and " << m.step;
        EXPECT_EQ(e.cache, m.cache) << path;
        models++;
      }
    }
  std::printf("%d plans, at worst %.1f %% off\n", models, 100 * worst);
  EXPECT_GE(models, 20);
}

// Llama 3 8B in q4_0: 8.03e9 weights of 4.5 bits are 4.5 GB; its KV cache of 8192 positions in f16 is 1 GiB.
TEST(Estimate, OfAKnownModel) {
  ModelDimensions d;
  d.layers = 32, d.embedding = 4096, d.heads = 32, d.kv_heads = 8, d.head_dim = 128, d.ffn = 14336;
  d.vocabulary = 128256, d.context = 8192;
  MemoryEstimate e = estimate_inference_memory(d);
  EXPECT_EQ(e.cache, uint64_t(1) << 30);
  EXPECT_NEAR(double(e.weights), 8.03e9 * 4.5 / 8, 0.01e9);
  EXPECT_EQ(e.total(), e.weights + e.cache + e.activations + e.step + e.output);
  d.cache = DType::Q8_0;
  EXPECT_EQ(estimate_inference_memory(d).cache, (uint64_t(1) << 30) / 64 * 34);
  d.cache = DType::F16, d.sequences = 3;
  EXPECT_EQ(estimate_inference_memory(d).cache, uint64_t(3) << 30);
  d.tied_output = true;
  EXPECT_EQ(e.weights - estimate_inference_memory(d).weights, uint64_t(128256) * 4096 * 18 / 32);
}

// 72 layers of 13 squares of the width, and two tables of the vocabulary: 1.02e12 weights.
TEST(Estimate, OfATrillionParameters) {
  ModelDimensions d;
  d.layers = 72, d.embedding = 32768, d.heads = d.kv_heads = 256, d.head_dim = 128, d.ffn = 98304;
  d.vocabulary = 200000, d.context = 1 << 20, d.batch = 512, d.weights = DType::F16;
  const MemoryEstimate e = estimate_inference_memory(d);
  const double squares = 72. * 13 * 32768 * 32768, tables = 2. * 200000 * 32768;
  ASSERT_GT(squares + tables, 1e12);
  EXPECT_NEAR(double(e.weights), 2 * (squares + tables), 1e-4 * squares);
  EXPECT_EQ(e.cache, uint64_t(72) * 2 * 32768 * 2 << 20) << "keys and values of 2^20 positions";
  EXPECT_EQ(e.total(), e.weights + e.cache + e.activations + e.step + e.output);
  EXPECT_GT(e.total(), uint64_t(10) << 40);
}

TEST(Estimate, OfNonsenseIsSmall) {
  ModelDimensions d;
  d.layers = d.embedding = d.heads = d.kv_heads = d.head_dim = d.ffn = d.vocabulary = -5;
  d.context = d.batch = d.sequences = -1;
  EXPECT_EQ(estimate_inference_memory(d).total(), 0u);
}

}  // namespace
}  // namespace gimbal::test
