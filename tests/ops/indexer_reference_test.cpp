// The reference of an indexer's ops against values worked out by hand.
#include "support/reference.h"

#include <array>

namespace gimbal::reference {
namespace {

// Two heads of one value, keys 0, 2, -1 and 3; the row's position is 2.
TEST(IndexerReference, IndexScoresSumWhatIsAboveZero) {
  Tensor q = floats({1, 2, 1}, {3, -2}), keys = floats({1, 1, 64, 1}, std::vector<double>(64, 9)),
         weights = floats({2, 1}, {0.5, -1}), position = ints({1}, {2}), sequence = ints({1}, {0}),
         pages = ints({1, 1}, {0});
  for (size_t j = 0; j < 4; j++) keys.values[j] = std::array{0., 2., -1., 3.}[j];
  OpParams p;
  p.i[0] = 64;
  const std::vector<double> got =
      run_op(OpKind::IndexScores, p, {&q, &keys, &weights, &position, &sequence, &pages},
             Shape(DType::F32, {64, 1}), 1)
          .out.values;
  near({got.begin(), got.begin() + 3}, {0, 3, -2});
  for (size_t j = 3; j < 64; j++) EXPECT_EQ(got[j], double(kHidden));
}

TEST(IndexerReference, KeepTopTakesEqualOnesByTheirPlaces) {
  const double nan = NAN, no = double(kHidden);
  Tensor x = floats({5, 2}, {1, 3, -0.0, 3, 0, nan, 1, nan, 2, 2}),
         top = floats({6, 2}, {3, 3, 1, 1, 3, 0, nan, nan, 2, 0, 2, 3});
  near(run_op(OpKind::KeepTop, {}, {&x, &top}, x.shape, 2).out.values, {0, 0, no, 0, no, 0, no, 0, 0, no});
  Tensor two = floats({2, 2}, {-0.0, 2, nan, 0});
  near(run_op(OpKind::KeepTop, {}, {&x, &two}, x.shape, 2).out.values, {0, 0, 0, 0, no, 0, no, no, no, no});
}

}  // namespace
}  // namespace gimbal::reference
