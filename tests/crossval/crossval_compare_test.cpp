// What rounding explains, and the verdict of a comparison.
#include "crossval/compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "crossval/crossval.h"

namespace gimbal::crossval {
namespace {

// Two rows of four numbers; the moved runs are 0.01 and 0.02 away in one number of row 0, and 0.001 in all of
// row 1.
struct Sample {
  Rows exact{4, {1, 2, 3, 4, 10, 10, 10, 10}};
  std::vector<Rows> moved{{4, {1.01, 2, 3, 4, 10.001, 10, 10, 10}},
                          {4, {1, 2, 3.02, 4, 10.001, 9.999, 10.001, 9.999}}};
  Rounding rounding{exact, moved};
};

TEST(CrossvalRounding, AllowsThreeTimesTheFarthestMovedRun) {
  const Sample s;
  ASSERT_EQ(s.rounding.rows(), 2);
  EXPECT_NEAR(s.rounding.allowed(0), 3 * 0.01, 1e-12);   // 0.02 in one of four numbers
  EXPECT_NEAR(s.rounding.allowed(1), 3 * 0.001, 1e-12);  // in all four
  EXPECT_NEAR(s.rounding.share(0, std::vector<float>{1, 2, 3, 4.06f}), 1, 1e-4);
  EXPECT_NEAR(s.rounding.share(1, std::vector<float>{10, 10, 10, 10.03f}), 10, 0.01);
  EXPECT_EQ(s.rounding.share(0, std::vector<float>{1, 2, 3, 4}), 0);
  EXPECT_TRUE(std::isinf(s.rounding.share(0, std::vector<float>{1, 2, 3, NAN})));
  // Two results may differ twice as much as each from the reference: 0.03 of a row of 2.74, the largest
  // share.
  EXPECT_NEAR(s.rounding.share_of_difference(0.03 / std::sqrt(7.5), 0, 1), 0.5, 1e-6);
}

TEST(CrossvalDifference, KeepsTheLargestAndItsPlace) {
  const Sample s;
  Difference d;
  d.what = "layer 3";
  add_row(d, 0, std::vector<float>{1, 2, 3, 4}, std::vector<float>{1, 2, 3, 4}, &s.rounding);
  EXPECT_TRUE(d.same_bits);
  EXPECT_TRUE(d.explained_by_rounding());
  add_row(d, 1, std::vector<float>{10, 10, 10, 10}, std::vector<float>{10, 10, 10.5f, 10}, &s.rounding);
  EXPECT_FALSE(d.same_bits);
  EXPECT_EQ(d.row, 1);
  EXPECT_EQ(d.column, 2);
  EXPECT_EQ(d.ours, 10);
  EXPECT_EQ(d.theirs, 10.5f);
  EXPECT_FLOAT_EQ(float(d.largest), 0.5f);
  EXPECT_EQ(*d.our_share, 0);
  EXPECT_GT(*d.their_share, 100);
  EXPECT_FALSE(d.explained_by_rounding());
}

TEST(CrossvalDifference, NotANumberIsNeverExplained) {
  const Sample s;
  for (const bool ours : {true, false}) {
    Difference d;
    const std::vector<float> right{1, 2, 3, 4}, wrong{1, NAN, 3, 4};
    add_row(d, 0, ours ? wrong : right, ours ? right : wrong, &s.rounding);
    EXPECT_FALSE(d.explained_by_rounding());
    add_row(d, 1, right, right, &s.rounding);
    EXPECT_FALSE(d.explained_by_rounding());
    EXPECT_EQ(d.column, 1);
  }
}

TEST(CrossvalDifference, RowsBehindTheReferenceCountRelatively) {
  const Sample s;
  Difference d;
  const std::vector<float> big{100, 100, 100, 100};
  add_row(d, 5, big, std::vector<float>{100.1f, 100.1f, 100, 100}, &s.rounding);
  EXPECT_TRUE(d.explained_by_rounding());
  EXPECT_FALSE(d.our_share.has_value());
  add_row(d, 6, big, std::vector<float>{110, 110, 100, 100}, &s.rounding);
  EXPECT_FALSE(d.explained_by_rounding());
}

CrossvalReport report_with(double layer, double logits) {
  CrossvalReport r;
  for (const auto& [what, share] : {std::pair("layer 0", 0.1), {"layer 1", layer}}) {
    Difference d;
    d.what = what, d.rows = 1, d.same_bits = false, d.share = share, d.explained = 0.5;
    r.layers.push_back(d);
  }
  r.logits.what = "logits", r.logits.same_bits = false, r.logits.share = logits, r.logits.explained = 0.5;
  return r;
}

TEST(CrossvalVerdict, NamesTheFirstDivergence) {
  CrossvalReport r = report_with(7, 90);
  decide(r);
  EXPECT_EQ(r.verdict, Verdict::Different);
  EXPECT_EQ(r.reason.find("layer 1:"), 0u) << r.reason;
  r = report_with(0.5, 90);
  decide(r);
  EXPECT_EQ(r.reason.find("logits:"), 0u) << r.reason;
  r = report_with(0.5, 0.9);
  decide(r);
  EXPECT_EQ(r.verdict, Verdict::WithinRounding);
  EXPECT_NE(r.reason.find("first difference: layer 0:"), std::string::npos) << r.reason;
}

TEST(CrossvalVerdict, TokensComeFirstAndTiesAreNoDivergence) {
  CrossvalReport r = report_with(7, 90);
  r.ids = IdsCompared{10, 11, false, 4, 17, 18, "a", "\x1b"};
  decide(r);
  EXPECT_EQ(r.verdict, Verdict::Different);
  EXPECT_NE(r.reason.find("number 4 is token 17 'a' here, token 18 '\\x1b' there"), std::string::npos)
      << r.reason;

  r = report_with(0.5, 0.5);
  r.greedy = GreedyCompared{32, 5, 1, 2, 0.01, 0.02, true};
  decide(r);
  EXPECT_EQ(r.verdict, Verdict::WithinRounding);
  r.greedy->tie = false;
  decide(r);
  EXPECT_EQ(r.verdict, Verdict::Different);
}

TEST(CrossvalVerdict, WithoutAReferenceADifferenceHasNone) {
  CrossvalReport r = report_with(0, 0);
  for (Difference& d : r.layers) d.share.reset();
  r.logits.share.reset(), r.no_reference = "too large";
  decide(r);
  EXPECT_EQ(r.verdict, Verdict::Unknown);
  EXPECT_NE(r.reason.find("too large"), std::string::npos);
  for (Difference& d : r.layers) d.same_bits = true;
  r.logits.same_bits = true;
  decide(r);
  EXPECT_EQ(r.verdict, Verdict::Same);
}

}  // namespace
}  // namespace gimbal::crossval
