// Llama 4 beyond its first chunk of 8192 positions. Layers that attend within chunks know nothing of the
// chunks before: there a text is as if it began anew, but for the rounding of rotations by larger angles.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "support/engine.h"
#include "support/golden.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

constexpr int kChunk = 8192, kBehind = 40, kBefore = 8;

class Chunks : public testing::Test {
 protected:
  // With the first layers of the model only; three of four attend within chunks, the fourth to everything.
  static Engine open(int layers) {
    EngineOptions o;
    o.device = "threads=1";
    o.run.context = kChunk + 64, o.run.batch = 256, o.run.logit_rows = 256, o.run.first_layers = layers;
    o.run.cache_type = DType::F32;
    auto e = open_engine(golden_dir() + "/more/arch/llama4.gguf", o);
    if (e) return std::move(*e);
    ADD_FAILURE() << e.error().message;
    std::abort();
  }
  // Of the last tokens; `split` tokens at a time.
  static std::vector<float> last_logits(Engine& e, std::span<const int32_t> tokens, int last, size_t split) {
    std::vector<float> all;
    auto s = *Session::create(*e.model);
    const size_t before = tokens.size() - size_t(last);
    for (size_t at = 0; at < before; at += split) {
      auto ok = s->advance(tokens.subspan(at, std::min(split, before - at)), Session::Wanted::None, {});
      EXPECT_TRUE(ok) << ok.error().message;
    }
    auto ok = s->advance(
        tokens.subspan(before), Session::Wanted::All,
        [&](size_t, std::span<const float> row) { all.insert(all.end(), row.begin(), row.end()); });
    EXPECT_TRUE(ok) << ok.error().message;
    return all;
  }
  static double farthest(std::span<const float> a, std::span<const float> b) {
    EXPECT_EQ(a.size(), b.size());
    double most = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); i++)
      most = std::max(most, std::fabs(double(a[i]) - b[i]));
    return most;
  }

  const std::vector<int32_t> tokens_ = any_tokens(kChunk + kBehind);
};

TEST_F(Chunks, ATextBeginsAnewBehindTheBoundary) {
  Engine e = open(3);
  const size_t row = size_t(e.model->config().vocabulary);
  // The last rows of the first chunk, and the first ones of the second.
  const auto all = last_logits(e, tokens_, kBefore + kBehind, 4096);
  ASSERT_EQ(all.size(), row * (kBefore + kBehind));
  const std::span<const float> behind = std::span(all).subspan(row * kBefore);
  const auto anew = e.all_logits({tokens_.end() - kBehind, tokens_.end()});
  EXPECT_LT(farthest(behind, anew), 2e-3);
  std::printf("behind the boundary: farthest logit %.1e\n", farthest(behind, anew));
  // One position earlier it does not: rows there see all that came before.
  const auto shifted = e.all_logits({tokens_.end() - kBehind - 1, tokens_.end()});
  EXPECT_GT(farthest(behind.first(row), std::span(shifted).subspan(row, row)), 0.05);
  EXPECT_GT(farthest(std::span(all).subspan(row * (kBefore - 1), row), std::span(shifted).first(row)), 0.05);
}

TEST_F(Chunks, TheSameBitsForAnySplitAcrossTheBoundary) {
  Engine e = open(4);
  EXPECT_EQ(bits_differ(last_logits(e, tokens_, kBefore + kBehind, 4096),
                        last_logits(e, tokens_, kBefore + kBehind, 1000)),
            "");
}

}  // namespace
}  // namespace gimbal::test
