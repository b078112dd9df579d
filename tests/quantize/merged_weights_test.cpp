// Weights with an adapter that are larger than what is merged at once, read piece by piece.
#include "quantize/merged_weights.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/file.h"
#include "model/lora.h"
#include "support/gguf_writer.h"
#include "support/golden.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

constexpr int64_t kColumns = 1024, kRows = 640, kExperts = 3;

std::string floats(int64_t n, const std::function<float(int64_t)>& value) {
  std::string bytes;
  for (int64_t i = 0; i < n; i++) bytes += le(value(i));
  return bytes;
}

// Experts, and a matrix behind them; all weights are 0. Row r of expert e becomes (e + 1) (r + 1), and of the
// matrix - (r + 1).
ModelSource adapted_model() {
  const std::string model = temporary_path("merged-base.gguf"), adapter = temporary_path("merged-lora.gguf");
  const uint64_t k = kColumns, n = kRows, e = kExperts;
  const auto zero = [](int64_t) { return 0.f; };
  GgufWriter w;
  w.string("general.architecture", "llama");
  w.tensor("blk.0.ffn_up_exps.weight", {k, n, e}, 0, floats(kColumns * kRows * kExperts, zero));
  w.tensor("blk.0.attn_q.weight", {k, n}, 0, floats(kColumns * kRows, zero));
  EXPECT_TRUE(write_file(model, w.build()));
  const auto row = [](int64_t i) { return float(i % kRows + 1); };
  GgufWriter lora;
  lora.string("general.type", "adapter")
      .string("adapter.type", "lora")
      .string("general.architecture", "llama");
  lora.f32("adapter.lora.alpha", 1);
  lora.tensor("blk.0.ffn_up_exps.weight.lora_a", {k, 1, e}, 0,
              floats(kColumns * kExperts, [](int64_t i) { return float(i / kColumns + 1); }));
  lora.tensor("blk.0.ffn_up_exps.weight.lora_b", {1, n, e}, 0, floats(kRows * kExperts, row));
  lora.tensor("blk.0.attn_q.weight.lora_a", {k, 1}, 0, floats(kColumns, [](int64_t) { return -1.f; }));
  lora.tensor("blk.0.attn_q.weight.lora_b", {1, n}, 0, floats(kRows, row));
  EXPECT_TRUE(write_file(adapter, lora.build()));
  ModelSource source = open_file(model);
  const Status joined = add_lora(source, {adapter, 1});
  EXPECT_TRUE(joined) << joined.error().message;
  return source;
}

TEST(MergedWeights, RowsOfEachExpertAndOfTheNextWeight) {
  const ModelSource source = adapted_model();
  auto merged = MergedWeights::of(source);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->changed(), 2u);
  const StoredTensor &experts = *source.tensors().find("blk.0.ffn_up_exps.weight"),
                     &matrix = *source.tensors().find("blk.0.attn_q.weight");
  // To the end of the experts in pieces that are no whole rows, then the matrix, then an expert again.
  std::vector<float> all(size_t(experts.values()));
  const size_t bytes = all.size() * 4, piece = 999'996;
  for (size_t at = 0; at < bytes; at += piece)
    ASSERT_TRUE(
        merged->read(experts, at, reinterpret_cast<char*>(all.data()) + at, std::min(piece, bytes - at)));
  for (int64_t e = 0; e < kExperts; e++)
    for (int64_t r = 0; r < kRows; r++)
      for (const int64_t c : {int64_t(0), kColumns - 1})
        ASSERT_EQ(all[size_t((e * kRows + r) * kColumns + c)], float((e + 1) * (r + 1)))
            << "expert " << e << ", row " << r << ", column " << c;
  std::vector<float> one(kColumns);
  for (const int64_t r : {int64_t(0), kRows - 1}) {
    ASSERT_TRUE(merged->read(matrix, uint64_t(r * kColumns * 4), one.data(), kColumns * 4));
    EXPECT_EQ(one[5], float(-(r + 1)));
  }
  // A row that the window of the matrix has, and one that it lacks.
  ASSERT_TRUE(merged->read(experts, 0, one.data(), kColumns * 4));
  EXPECT_EQ(one[5], 1.f) << "the first row of the first expert";
  ASSERT_TRUE(merged->read(experts, uint64_t(kRows * kColumns * 4), one.data(), kColumns * 4));
  EXPECT_EQ(one[5], 2.f) << "the first row of the second expert";
}

}  // namespace
}  // namespace gimbal::test
