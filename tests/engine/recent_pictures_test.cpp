// The rows of recent pictures: which are kept, and where they stand among the tokens of a prompt.
#include "engine/recent_pictures.h"

#include <gtest/gtest.h>

#include "model/vision/picture_prompt.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

EmbeddingsPtr rows_of(int rows, float value) {
  auto made = Embeddings::create(std::vector<float>(size_t(rows) * 4, value), 4);
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

// `kib`: the bytes of its rows.
PictureRowsPtr picture(int kib) {
  auto p = std::make_shared<PictureRows>();
  p->rows = {rows_of(kib * 32, 1), rows_of(kib * 32, 2)};
  return p;
}

TEST(RecentPictures, BytesOfAllPieces) { EXPECT_EQ(picture(3)->bytes(), 3u * 1024); }

TEST(RecentPictures, TheLatestUpToALimit) {
  RecentPictures all(4 * 1024);
  const auto a = picture(1), b = picture(2), c = picture(1);
  EXPECT_EQ(all.find("a"), nullptr);
  all.add("a", a), all.add("b", b), all.add("c", c);
  EXPECT_EQ(all.find("b"), b) << "4 KiB in all";
  EXPECT_EQ(all.find("c"), c);
  EXPECT_EQ(all.find("a"), a) << "and it is the latest now";
  all.add("d", picture(1));
  EXPECT_EQ(all.find("b"), nullptr) << "which was used the longest ago";
  EXPECT_EQ(all.find("a"), a);
  EXPECT_EQ(all.find("c"), c);
  EXPECT_NE(all.find("d"), nullptr);
  all.add("e", picture(1));
  for (const char* name : {"a", "c", "d", "e"}) EXPECT_NE(all.find(name), nullptr) << "4 KiB again: " << name;
}

TEST(RecentPictures, OneThatIsTooLargeStaysUntilTheNext) {
  RecentPictures all(1024);
  const auto large = picture(3);
  all.add("small", picture(1)), all.add("large", large);
  EXPECT_EQ(all.find("small"), nullptr);
  EXPECT_EQ(all.find("large"), large);
  all.add("next", picture(1));
  EXPECT_EQ(all.find("large"), nullptr);
  EXPECT_NE(all.find("next"), nullptr);
}

TEST(RecentPictures, TheSameAgainTakesNoMore) {
  RecentPictures all(2 * 1024);
  const auto a = picture(1);
  for (int i = 0; i < 5; i++) all.add("a", i == 0 ? a : picture(1));
  all.add("b", picture(1));
  EXPECT_EQ(all.find("a"), a) << "the first one's rows, in which computed state is shared";
  EXPECT_NE(all.find("b"), nullptr);
}

TEST(RecentPictures, AreNamedByTheirFiles) {
  EXPECT_EQ(picture_digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
      << "FIPS 180-4's own example";
  EXPECT_NE(picture_digest("abc"), picture_digest("abd"));
}

TEST(WithPictures, RowsStandInTheirOrderInPlaceOfMarks) {
  const auto made = [](int rows, float value, Token around) {
    auto p = std::make_shared<PictureRows>();
    p->chunks = {{{around}}, {{}, 0}, {{around + 1}}};
    p->rows = {rows_of(rows, value)};
    return p;
  };
  const std::vector<Token> prompt = {5, kNoToken, 6, kNoToken};
  const std::vector<PictureRowsPtr> pictures = {made(2, 0.5f, 100), made(1, 0.25f, 200)};
  const Inputs all = with_pictures(prompt, pictures);
  const std::vector<Token> want = {5, 100, kNoToken, kNoToken, 101, 6, 200, kNoToken, 201};
  ASSERT_EQ(std::vector<Token>(all.tokens().begin(), all.tokens().end()), want);
  const InputView view = all;
  EXPECT_EQ(view[2].values()[0], 0.5f);
  EXPECT_EQ(view[3].row, 1);
  EXPECT_EQ(view[7].values()[0], 0.25f);
  EXPECT_EQ(view[4].values(), nullptr);
  const Inputs none = with_pictures(std::vector<Token>{1, 2}, {});
  EXPECT_EQ(std::vector<Token>(none.tokens().begin(), none.tokens().end()), (std::vector<Token>{1, 2}));
}

}  // namespace
}  // namespace gimbal::test
