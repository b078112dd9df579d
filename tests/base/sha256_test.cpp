#include "base/sha256.h"

#include <gtest/gtest.h>

#include "support/sha256.h"

namespace gimbal::test {
namespace {

TEST(Sha256, TheStandardsExamples) {
  gimbal::Sha256 s;
  s.add("abc");
  EXPECT_EQ(s.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(gimbal::Sha256().hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, InPiecesOfAnySize) {
  std::string text;
  for (int i = 0; i < 300; i++) {
    for (size_t piece : {1, 7, 63, 64, 65, 200}) {
      gimbal::Sha256 s(i % 2 == 0);
      for (size_t at = 0; at < text.size(); at += piece) s.add(std::string_view(text).substr(at, piece));
      ASSERT_EQ(s.hex(), sha256(text)) << text.size() << " bytes in pieces of " << piece;
    }
    text += char(i * 7);
  }
}

TEST(Sha256, TheProcessorsInstructionsGiveTheSameDigests) {
  std::string text;
  for (int i = 0; i < 2000; i++) text += char(i * i >> 3);
  for (size_t n = 0; n <= text.size(); n += 13) {
    gimbal::Sha256 fast, portable(false);
    fast.add(text.substr(0, n)), portable.add(text.substr(0, n));
    ASSERT_EQ(fast.digest(), portable.digest()) << n << " bytes";
  }
}

TEST(Sha256, FourTextsAtOnceHaveTheDigestsOfEach) {
  std::string text;
  for (int i = 0; i < 3000; i++) text += char(i * i >> 3);
  const std::string_view all = text;
  for (const size_t length : {0, 1, 63, 64, 65, 640, 700})
    for (const size_t more : {0, 1, 64, 900}) {
      const std::array<std::string_view, 4> parts{all.substr(0, length), all.substr(1, length),
                                                  all.substr(length, length), all.substr(2, length + more)};
      for (const bool hardware : {true, false}) {
        const auto found = gimbal::Sha256::four(parts, hardware);
        for (size_t i = 0; i < 4; i++) {
          gimbal::Sha256 one(false);
          one.add(parts[i]);
          EXPECT_EQ(found[i], one.digest()) << i << " of " << length << " and " << more << " bytes";
        }
      }
    }
}

}  // namespace
}  // namespace gimbal::test
