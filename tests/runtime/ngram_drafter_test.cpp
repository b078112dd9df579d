// What the text itself lets one guess.
#include "runtime/model_drafter.h"

#include <gtest/gtest.h>

namespace gimbal::test {
namespace {

using Text = std::vector<int32_t>;

Text guess(const Text& text, int n) { return *NgramDrafter().propose(text, n); }

TEST(NgramDrafter, GuessesWhatFollowedTheSameTokensBefore) {
  EXPECT_EQ(guess({1, 2, 3, 4, 5, 9, 1, 2}, 3), (Text{3, 4, 5}));
  EXPECT_EQ(guess({1, 2, 3, 4, 5, 9, 1, 2}, 1), Text{3});
}

TEST(NgramDrafter, TheLongestMatchCountsAndOfEqualOnesTheLatest) {
  EXPECT_EQ(guess({7, 1, 2, 50, 8, 1, 2, 60, 9, 7, 1, 2}, 1), Text{50}) << "three tokens before two";
  EXPECT_EQ(guess({7, 1, 2, 50, 8, 1, 2, 60, 9, 4, 1, 2}, 1), Text{60}) << "the latest";
}

TEST(NgramDrafter, ATextThatRepeatsItselfIsRepeated) {
  EXPECT_EQ(guess({5, 6, 7, 5, 6, 7}, 7), (Text{5, 6, 7, 5, 6, 7, 5}));
  EXPECT_EQ(guess({4, 9, 9, 9}, 4), (Text{9, 9, 9, 9}));
}

TEST(NgramDrafter, WithoutAMatchThereIsNoGuess) {
  for (const Text& text : {Text{}, Text{1}, Text{1, 1}, Text{1, 2, 3, 4}, Text{1, 2, 3, 2}})
    EXPECT_EQ(guess(text, 5), Text()) << "a single token is too little";
  EXPECT_EQ(guess({1, 2, 3, 1, 2}, 0), Text());
}

TEST(NgramDrafter, LongMatchesEndTheSearch) {
  Text text;
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < 40; i++) text.push_back(i);
  text.push_back(0);
  EXPECT_EQ(guess(text, 2), (Text{1, 2}));
}

}  // namespace
}  // namespace gimbal::test
