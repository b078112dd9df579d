// Architectures that the collection has no model of, against llama.cpp: embeddings, or logits and greedy
// tokens, of files whose weights are made here. `scripts/oracle/logits.py --write NAME` asks llama.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "files/gguf.h"
#include "runtime/embedding.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/plain_weights.h"

namespace gimbal::test {
namespace {

std::vector<std::string> descriptions() {
  std::vector<std::string> all;
  for (const auto& entry :
       std::filesystem::directory_iterator(GIMBAL_SOURCE_DIR "/tests/data/peer/architectures"))
    all.push_back(entry.path().string());
  std::sort(all.begin(), all.end());
  return all;
}

std::string write_model(const nlohmann::ordered_json& golden, const std::string& path) {
  const std::string file = temporary_path(std::filesystem::path(path).stem().string() + ".gguf");
  std::ofstream(file, std::ios::binary) << plain_model(golden);
  return file;
}

Result<gimbal::test::Engine> open(const std::string& file, int batch, bool embeds) {
  EngineOptions o;
  o.run.context = 256, o.run.batch = batch, o.run.cache_type = DType::F32;
  if (embeds) o.run = embedding_options(o.run, {}, 1);
  else o.run.logit_rows = batch;
  return open_engine(file, o);
}

// The text's embedding as the file pools it, of length 1.
std::vector<float> embedding_of(gimbal::test::Engine& e, const std::vector<int32_t>& tokens) {
  std::vector<float> got;
  const auto pooling = pooling_of(e.file->metadata());
  EXPECT_TRUE(pooling && *pooling);
  if (!pooling || !*pooling) return got;
  const std::vector<std::vector<int32_t>> texts = {tokens};
  const auto ok = embed(*e.model, texts, {**pooling, true}, [&](size_t, std::span<const float> x) -> Status {
    got.assign(x.begin(), x.end());
    return Done{};
  });
  EXPECT_TRUE(ok) << ok.error().message;
  return got;
}

void check_embedding(const nlohmann::ordered_json& golden, const std::string& file) {
  const std::vector<float> want = base64_floats(golden["embedding"]);
  auto e = open(file, 256, true);
  ASSERT_TRUE(e) << e.error().message;
  const std::vector<float> got = embedding_of(*e, golden["tokens"]);
  ASSERT_EQ(got.size(), want.size());
  double product = 0, length = 0;
  for (size_t i = 0; i < got.size(); i++)
    product += double(got[i]) * want[i], length += double(want[i]) * want[i];
  const double far = 1 - product / std::sqrt(length);
  std::printf("1 - cosine %.1e", far);
  EXPECT_LE(far, 1e-5);
}

void check_logits(const nlohmann::ordered_json& golden, const std::string& file) {
  const std::vector<float> want = base64_floats(golden["logits"]);
  auto e = open(file, 64, false);
  ASSERT_TRUE(e) << e.error().message;
  std::vector<int32_t> tokens = golden["tokens"];
  const std::vector<int32_t> greedy = golden["greedy"];
  const size_t last = tokens.size() - 1;
  tokens.insert(tokens.end(), greedy.begin(), greedy.end() - 1);
  const std::vector<float> rows = e->all_logits(tokens), alone = e->all_logits(tokens, 1);
  ASSERT_EQ(rows.size(), tokens.size() * want.size());
  double largest = 0;
  for (size_t i = 0; i < want.size(); i++)
    largest = std::max(largest, std::fabs(double(rows[last * want.size() + i]) - want[i]));
  std::printf("largest difference %.1e", largest);
  EXPECT_LE(largest, golden.contains("gelu_by_table") ? 3e-2 : 1e-3);
  for (size_t s = 0; s < greedy.size(); s++) {
    const float* row = &rows[(last + s) * want.size()];
    EXPECT_EQ(int32_t(std::max_element(row, row + want.size()) - row), greedy[s]) << "step " << s;
  }
  ASSERT_EQ(alone.size(), rows.size());
  EXPECT_EQ(std::memcmp(alone.data(), rows.data(), rows.size() * sizeof(float)), 0) << "token by token";
}

TEST(PeerArchitectures, AreComputedAsByLlamaCpp) {
  const std::vector<std::string> all = descriptions();
  EXPECT_GE(all.size(), 12u);
  for (const std::string& path : all) {
    SCOPED_TRACE(path);
    const auto golden = read_json(path);
    std::printf("%-24s ", std::filesystem::path(path).stem().c_str());
    const std::string file = write_model(golden, path);
    if (golden.contains("embedding")) check_embedding(golden, file);
    else check_logits(golden, file);
    std::printf("\n");
  }
}

}  // namespace
}  // namespace gimbal::test
