// Inputs have identities: tokens by number, embeddings by what is in them.
#include "runtime/inputs.h"

#include <gtest/gtest.h>

#include <limits>

namespace gimbal::test {
namespace {

constexpr int kWidth = 3;

EmbeddingsPtr rows(int n, float from) {
  std::vector<float> values;
  for (int i = 0; i < n * kWidth; i++) values.push_back(from + float(i));
  return *Embeddings::create(std::move(values), kWidth);
}

// 1, 2, three rows, 3.
Inputs picture(const EmbeddingsPtr& of, int first = 0) {
  return {{1, 2, kNoToken, kNoToken, kNoToken, 3}, {{2, of, first, 3}}};
}

TEST(Inputs, AreEqualWhereTheirIdentitiesAre) {
  const auto a = rows(4, 0), same = rows(4, 0), b = rows(4, 1);
  EXPECT_EQ(a->digest(), same->digest());
  EXPECT_NE(a->digest(), b->digest());
  EXPECT_NE(a->digest(), (*Embeddings::create({a->values().begin(), a->values().end()}, 6))->digest())
      << "the same numbers, of another width";
  EXPECT_EQ(common_prefix(picture(a), picture(a)), 6u);
  EXPECT_EQ(common_prefix(picture(a), picture(same)), 6u) << "from two sources";
  EXPECT_EQ(common_prefix(picture(a), picture(b)), 2u);
  EXPECT_EQ(common_prefix(picture(a), picture(a, 1)), 2u) << "other rows of the same";
  const std::vector<int32_t> tokens{1, 2, kNoToken, kNoToken, kNoToken, 3};
  EXPECT_EQ(common_prefix(picture(a), tokens), 2u) << "nothing is there to be equal to";
  EXPECT_EQ(common_prefix(tokens, tokens), 2u);
  Inputs longer = picture(a);
  longer.push(4);
  EXPECT_EQ(common_prefix(longer, picture(same)), 6u);
  longer.set(5, {9});
  EXPECT_EQ(common_prefix(longer, picture(same)), 5u);
}

TEST(Inputs, GrowAndShrinkByPosition) {
  const auto a = rows(4, 0), b = rows(4, 7);
  Inputs all = picture(a);
  all.append(InputView(picture(a)).subview(1, 3));  // 2, two rows
  EXPECT_EQ(all.tokens(), (std::vector<int32_t>{1, 2, -1, -1, -1, 3, 2, -1, -1}));
  ASSERT_EQ(all.embeddings().size(), 2u);
  EXPECT_EQ(all[8].row, 1);
  EXPECT_EQ(all[8].values(), a->row(1));
  all.push({kNoToken, &a, 2});
  EXPECT_EQ(all.embeddings().back().rows, 3) << "it continues the span";
  EXPECT_EQ(common_prefix(InputView(all).subview(6), InputView(picture(a)).subview(1, 4)), 4u);
  all.resize(8);
  EXPECT_EQ(all.embeddings().back().rows, 1);
  all.resize(7);
  EXPECT_EQ(all.embeddings().size(), 1u);
  all.set(3, all[3]);
  EXPECT_EQ(all.size(), 7u) << "the same again";
  all.set(3, {kNoToken, &b, 0});
  EXPECT_EQ(all.size(), 4u) << "behind another picture the text is another one";
  EXPECT_EQ(common_prefix(all, picture(a)), 3u);
}

TEST(Inputs, ThatCannotBeAreRefused) {
  const auto a = rows(4, 0);
  EXPECT_TRUE(check_inputs(picture(a), 10, kWidth));
  EXPECT_FALSE(check_inputs(picture(a), 10, 0)) << "a model of tokens";
  EXPECT_FALSE(check_inputs(picture(a), 10, kWidth + 1));
  EXPECT_FALSE(check_inputs(picture(a, 2), 10, kWidth)) << "rows 2 to 4 of four";
  EXPECT_FALSE(check_inputs(picture(a), 3, kWidth)) << "token 3";
  EXPECT_FALSE(check_inputs(std::vector<int32_t>{1, kNoToken}, 10, kWidth)) << "no embedding";
  EXPECT_FALSE(check_inputs(Inputs({1}, {{0, a, 0, 1}}), 1, kWidth)) << "token 1 of one";
  EXPECT_FALSE(Embeddings::create({1, 2}, kWidth));
  EXPECT_FALSE(Embeddings::create({}, kWidth));
  EXPECT_FALSE(Embeddings::create({1, 2, std::numeric_limits<float>::quiet_NaN()}, kWidth));
}

}  // namespace
}  // namespace gimbal::test
