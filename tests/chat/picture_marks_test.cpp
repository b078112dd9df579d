// Where pictures stand in a text behind a chat template: found whatever the template does, and never made by
// a user's own text.
#include "chat/picture_marks.h"

#include <gtest/gtest.h>

namespace gimbal::test {
namespace {

const std::string kBegin = "<__media_0123";

std::string error_of(std::string_view text, size_t pictures) {
  const auto found = find_picture_marks(text, kBegin, pictures);
  if (found) return "";
  EXPECT_EQ(found.error().code, Code::Usage);
  return found.error().message;
}

TEST(PictureMarks, AreRandomForEachRequest) {
  const std::string one = new_picture_marks(), two = new_picture_marks();
  EXPECT_NE(one, two);
  EXPECT_TRUE(one.starts_with("<__media_")) << one;
  EXPECT_EQ(one.size(), std::string("<__media_").size() + 32) << "128 bits";
}

TEST(PictureMarks, InTheOrderOfTheText) {
  const std::string first = picture_mark(kBegin, 0), last = picture_mark(kBegin, 11);
  std::string text = "a" + last + "bc";
  for (size_t i = 10; i > 0; i--) text += picture_mark(kBegin, i);
  text += first;
  const auto found = find_picture_marks(text, kBegin, 12);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 12u);
  EXPECT_EQ((*found)[0].picture, 11);
  EXPECT_EQ((*found)[0].begin, 1u);
  EXPECT_EQ((*found)[0].end, 1 + last.size());
  EXPECT_EQ((*found)[1].picture, 10);
  EXPECT_EQ((*found)[1].begin, 1 + last.size() + 2);
  EXPECT_EQ((*found)[11].picture, 0);
  EXPECT_EQ((*found)[11].end, text.size());
}

TEST(PictureMarks, WithoutPictures) {
  EXPECT_TRUE(find_picture_marks("any text <__media__>", kBegin, 0)->empty());
  EXPECT_TRUE(find_picture_marks("any text", "", 0)->empty());
}

TEST(PictureMarks, LeftOutTwiceOrSpoilt) {
  const std::string zero = picture_mark(kBegin, 0), one = picture_mark(kBegin, 1);
  EXPECT_EQ(error_of(zero, 2), "the model's chat template leaves out 1 of 2 pictures");
  EXPECT_EQ(error_of("", 2), "the model's chat template leaves out 2 of 2 pictures");
  const std::string changes = "the model's chat template changes the places of pictures";
  EXPECT_EQ(error_of(zero + zero, 1), changes);
  EXPECT_EQ(error_of(zero + one + zero, 2), changes);
  EXPECT_EQ(error_of(one, 1), changes) << "a picture that is not there";
  for (size_t n = kBegin.size(); n < zero.size(); n++)
    EXPECT_EQ(error_of(zero.substr(0, n), 1), changes) << n << " bytes of a mark";
  for (const char* other :
       {"_00__>", "_-0__>", "_+0__>", "_99999999999999999999999__>", "0__>", "__>", "_0_>"})
    EXPECT_EQ(error_of(kBegin + other, 1), changes) << other;
}

}  // namespace
}  // namespace gimbal::test
