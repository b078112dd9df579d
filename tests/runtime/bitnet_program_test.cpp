// A tiny BitNet model that microsoft/BitNet's own program packed and ran (tests/data/peer/bitnet): the same
// greedy tokens, and logits as near as its own are when it computes in another order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/file.h"
#include "files/gguf.h"
#include "support/engine.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

const std::string kModel = GIMBAL_SOURCE_DIR "/tests/data/peer/bitnet/model.gguf";

Result<gimbal::test::Engine> open(const std::string& path, DType cache) {
  EngineOptions o;
  o.run.cache_type = cache, o.run.context = 256, o.run.logit_rows = 64;
  return open_engine(path, o);
}

double mean(const std::vector<double>& all) {
  return std::accumulate(all.begin(), all.end(), 0.0) / double(all.size());
}

// Each token of theirs from the tokens before it. Activations are rounded to 8 bits, so sums in another order
// move some to the next code: their program itself chooses 5 of the 72 tokens otherwise when it computes them
// in one batch. So a token may be another one where theirs is ahead by less than their logits move then.
TEST(BitnetProgram, GivesTheSameTokens) {
  const auto golden = read_json(GIMBAL_SOURCE_DIR "/tests/data/peer/bitnet/model.json");
  auto engine = open(kModel, DType::F16);
  ASSERT_TRUE(engine) << engine.error().message;
  const size_t vocabulary = golden["vocabulary"];
  size_t seen = 0, others = 0, others_of_theirs = 0;
  std::vector<double> off, own_mean;
  for (const auto& c : golden["cases"]) {
    const auto& own = c["difference_in_one_batch"];
    const double most = own["most"];
    others_of_theirs += size_t(own["tokens"]), own_mean.push_back(own["mean"]);
    std::vector<int32_t> tokens = c["prompt"];
    const std::vector<int32_t> greedy = c["greedy"];
    const size_t prompt = tokens.size();
    tokens.insert(tokens.end(), greedy.begin(), greedy.end() - 1);
    const auto got = engine->all_logits(tokens);
    ASSERT_EQ(got.size(), tokens.size() * vocabulary);
    for (size_t i = 0; i < greedy.size(); i++, seen++) {
      const float* row = &got[(prompt - 1 + i) * vocabulary];
      const int ours = int(std::max_element(row, row + vocabulary) - row);
      if (ours == greedy[i]) continue;
      others++;
      double logit = -1e9;  // theirs of our token
      for (const auto& [token, value] : c["best"][i].get<std::vector<std::pair<int, double>>>())
        if (token == ours) logit = value;
      EXPECT_LT(c["best"][i][0][1].get<double>() - logit, most) << "token " << i;
    }
    for (auto [text, at] : {std::pair{"first_logits", prompt - 1}, {"last_logits", tokens.size() - 1}}) {
      const auto want = base64_floats(c[text]);
      ASSERT_EQ(want.size(), vocabulary);
      for (size_t i = 0; i < vocabulary; i++)
        off.push_back(std::fabs(double(got[at * vocabulary + i]) - want[i]));
      // A single token: attention copies its value, and no code moves.
      if (at == 0) { EXPECT_LT(mean(off), 1e-3); }
    }
    EXPECT_LT(*std::max_element(off.begin(), off.end()), 1.5 * most);
  }
  EXPECT_EQ(off.size(), 6 * vocabulary);
  EXPECT_LT(mean(off), 1.5 * mean(own_mean)) << "of six rows, beside the average of 72";
  EXPECT_EQ(seen, 72u);
  EXPECT_LE(others, others_of_theirs);
}

// A damaged file: their program would multiply by 2.
TEST(BitnetProgram, TheCode3IsRefused) {
  auto bytes = read_file(kModel);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto file = open_gguf(kModel);
  ASSERT_TRUE(file) << file.error().message;
  for (const StoredTensor& t : file->tensors()) {
    if (t.type != DType::I2_S || t.name != "blk.1.ffn_down.weight") continue;
    (*bytes)[size_t(t.offset) + 77] = '\x1c';  // 0, 1, 3, 0
  }
  const std::string path = temporary_path("damaged.gguf");
  ASSERT_TRUE(write_file(path, *bytes));
  const auto engine = open(path, DType::F32);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, Code::Malformed);
  EXPECT_NE(
      engine.error().message.find("tensor 'blk.1.ffn_down.weight': byte 77 of the codes has the code 3"),
      std::string::npos)
      << engine.error().message;
}

}  // namespace
}  // namespace gimbal::test
