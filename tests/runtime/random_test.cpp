// Compares the random numbers with those that their authors' programs print.
#include "runtime/random.h"

#include <gtest/gtest.h>

namespace gimbal {
namespace {

// The first numbers of Vigna's splitmix64.c for the seed 1234567.
TEST(Random, SplitMix64MatchesTheReference) {
  SplitMix64 r(1234567);
  for (uint64_t want : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                        4593380528125082431u, 16408922859458223821u}) {
    EXPECT_EQ(r.next(), want);
  }
}

// The first numbers of Blackman and Vigna's xoshiro256starstar.c for the state 1, 2, 3, 4.
TEST(Random, XoshiroMatchesTheReference) {
  Random r(std::array<uint64_t, 4>{1, 2, 3, 4});
  for (uint64_t want : {11520u, 0u, 1509978240u}) EXPECT_EQ(r.next(), want);
  for (uint64_t want :
       {1215971899390074240u, 1216172134540287360u, 607988272756665600u, 16172922978634559625u,
        8476171486693032832u, 10595114339597558777u, 2904607092377533576u}) {
    EXPECT_EQ(r.next(), want);
  }
}

TEST(Random, UniformCoversTheUnitInterval) {
  Random r(7);
  double sum = 0, least = 1, most = 0;
  for (int i = 0; i < 1000000; i++) {
    double u = r.uniform();
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u, least = std::min(least, u), most = std::max(most, u);
  }
  EXPECT_NEAR(sum / 1e6, 0.5, 0.0015);  // 5 standard deviations
  EXPECT_LT(least, 1e-4);
  EXPECT_GT(most, 1 - 1e-4);
}

}  // namespace
}  // namespace gimbal
