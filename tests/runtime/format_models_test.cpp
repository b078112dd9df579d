// Models in the formats for which the reference data has none: a small llama whose matrices are random
// blocks, beside its twin whose matrices are what these blocks mean (tensor/quant.h, held to other people's
// blocks by quant_test), in f32. They differ by the rounding of activations alone. Rows are whole numbers of
// the formats' blocks, and not of 256 columns.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/file.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/tiny_llama.h"
#include "tensor/quant.h"
#include "tensor/quant_encode.h"

namespace gimbal::test {
namespace {

constexpr uint32_t kWidth = 384, kFeedForward = 640, kVocabulary = 72;

// `type` for the matrices; as f32 the same numbers.
std::string model_of(DType type, bool as_floats) {
  TinyLlama llama;
  llama.u32("embedding_length", kWidth), llama.u32("feed_forward_length", kFeedForward);
  llama.u32("attention.head_count", 6), llama.u32("attention.head_count_kv", 2);
  llama.tensors["token_embd.weight"].dims = {kWidth, kVocabulary};
  llama.tensors["output_norm.weight"].dims = {kWidth};
  const std::string layer = "blk.0.";
  for (const char* norm : {"attn_norm", "ffn_norm"}) llama.tensors[layer + norm + ".weight"].dims = {kWidth};
  for (auto [name, columns, rows] : {std::tuple<const char*, uint32_t, uint32_t>{"attn_q", kWidth, kWidth},
                                     {"attn_k", kWidth, 128},
                                     {"attn_v", kWidth, 128},
                                     {"attn_output", kWidth, kWidth},
                                     {"ffn_gate", kWidth, kFeedForward},
                                     {"ffn_up", kWidth, kFeedForward},
                                     {"ffn_down", kFeedForward, kWidth}})
    llama.tensors[layer + name + ".weight"].dims = {columns, rows};

  std::mt19937_64 random(uint64_t(type) + 1);
  double squares = 0, count = 0;
  std::vector<std::pair<std::string, TinyTensor>> norms;
  GgufWriter w;
  for (auto& [key, value] : llama.keys) w.raw(key, value.first, value.second);
  for (auto& [name, t] : llama.tensors) {
    if (t.dims.size() == 1) {
      norms.emplace_back(name, t);
      continue;
    }
    const auto n = int64_t(t.dims[0] * t.dims[1]);
    std::string blocks(size_t(row_bytes(type, n) + tensor_tail_bytes(type)), '\0');
    random_blocks(type, n, blocks.data(), [&] { return random(); });
    if (tensor_tail_bytes(type)) blocks.replace(size_t(row_bytes(type, n)), 4, le(0.7f));
    std::vector<float> values(static_cast<size_t>(n));
    decode_tensor(type, blocks.data(), n, values.data());
    for (float v : values) squares += double(v) * v, count++;
    if (as_floats)
      w.tensor(name, t.dims, info(DType::F32).gguf,
               std::string(reinterpret_cast<const char*>(values.data()), size_t(n) * 4));
    else w.tensor(name, t.dims, info(type).gguf, blocks);
  }
  // So small that scores of attention stay where softmax is not all or nothing, whatever size the format's
  // values have.
  for (auto& [name, t] : norms) {
    std::string norm;
    for (uint64_t i = 0; i < t.dims[0]; i++) norm += le(float(0.05 / std::sqrt(squares / count)));
    w.tensor(name, t.dims, info(DType::F32).gguf, norm);
  }
  return w.build();
}

std::string written(DType type, bool as_floats) {
  const std::string path =
      temporary_path(std::string(info(type).name) + (as_floats ? "-floats.gguf" : ".gguf"));
  EXPECT_TRUE(write_file(path, model_of(type, as_floats)));
  return path;
}

std::vector<float> logits(const std::string& path, const std::string& device, int split) {
  EngineOptions o;
  o.device = device, o.run.cache_type = DType::F32, o.run.context = 64, o.run.logit_rows = 64;
  auto engine = open_engine(path, o);
  if (!engine) {
    ADD_FAILURE() << engine.error().message;
    return {};
  }
  std::vector<int32_t> tokens;
  for (int i = 0; i < 40; i++) tokens.push_back(i * 29 % int(kVocabulary));
  return engine->all_logits(tokens, split);
}

class FormatModels : public testing::TestWithParam<DType> {};

TEST_P(FormatModels, AreAsNearToTheirFloatsAsQ8_0) {
  auto distance = [](DType type) {
    const auto got = logits(written(type, false), "threads=2", 0),
               want = logits(written(type, true), "threads=2", 0);
    double apart = 0, size = 0;
    EXPECT_EQ(got.size(), size_t(40 * kVocabulary));
    for (size_t i = 0; i < want.size() && i < got.size(); i++)
      apart += std::fabs(double(got[i]) - want[i]), size += std::fabs(want[i]);
    return apart / size;
  };
  const double q8_0 = distance(DType::Q8_0), here = distance(GetParam());
  std::printf("%-6s %.2e of the logits' size, q8_0 %.2e\n", info(GetParam()).name, here, q8_0);
  EXPECT_LT(q8_0, 0.05);
  EXPECT_LT(here, 2 * q8_0);
}

TEST_P(FormatModels, GiveTheSameBitsEverywhere) {
  const std::string file = written(GetParam(), false);
  const auto want = logits(file, "threads=1\nvariant=baseline", 0);
  for (const std::string& v : cpu_variants().usable)
    for (int split : {0, 1, 17})
      EXPECT_EQ(logits(file, "threads=2\nvariant=" + v, split), want) << v << " split " << split;
}

INSTANTIATE_TEST_SUITE_P(Of, FormatModels,
                         testing::Values(DType::NVFP4, DType::Q1_0, DType::Q2_0, DType::I2_S),
                         [](auto& p) { return std::string(gimbal::info(p.param).name); });

}  // namespace
}  // namespace gimbal::test
