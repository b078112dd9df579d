// The length of drafts on made-up machines: what steps cost and how often guesses are right is given, and no
// clock is asked.
#include "runtime/draft_policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>

#include "runtime/random.h"

namespace gimbal::test {
namespace {

struct Machine {
  std::function<double(int rows)> cost;  // in steps of one row
  std::function<double(int token)> right;
  double guess = 0;        // for a token of a guess
  double noise = 0;        // times vary by as much, up and down
  bool recurrent = false;  // rows that are not kept must be computed anew
};

struct Course {
  double seconds = 0;  // plain: one for each token
  int tokens = 0, drafted = 0, steps = 0, with_drafts = 0;
  double gain() const { return tokens / seconds; }
};

Course run(const Machine& m, int tokens, DraftPolicy& length, uint64_t seed = 5) {
  Random random(seed);
  Course c;
  int again = 0;
  auto vary = [&](double t) { return t * (1 + m.noise * (2 * random.uniform() - 1)); };
  while (c.tokens < tokens) {
    const int n = length.next(std::min(kMaxDrafts, tokens - c.tokens - 1), {.rows = again});
    EXPECT_GE(n, 0);
    EXPECT_LE(n, kMaxDrafts);
    int right = 0;
    while (right < n && random.uniform() < m.right(c.tokens + right)) right++;
    const double took = vary(m.cost(1 + again + n)), guessing = n * m.guess;
    length.costs().took({1 + again + n, 1 + right, n, took, guessing});
    if (n) length.compared(std::min(right + 1, n), right);
    c.seconds += took + guessing, c.tokens += 1 + right, c.steps++, c.drafted += n, c.with_drafts += n > 0;
    again = m.recurrent && right < n ? again + 1 + right : 0;
  }
  return c;
}
Course run(const Machine& m, int tokens) {
  DraftPolicy fresh;
  return run(m, tokens, fresh);
}

double flat(int rows) { return 1 + 0.05 * (rows - 1); }
double dear(int rows) { return rows == 1 ? 1 : 3.5 + 0.2 * rows; }
double one_by_one(int rows) { return rows; }
std::function<double(int)> always(double right) {
  return [right](int) { return right; };
}

TEST(DraftPolicy, PaysWhereRowsAreCheapAndGuessesRight) {
  EXPECT_GT(run({flat, always(0.6)}, 256).gain(), 1.8);
  EXPECT_GT(run({flat, always(0.8)}, 256).gain(), 2.6);
  EXPECT_GT(run({flat, always(1)}, 256).gain(), 6);
  EXPECT_GT(run({flat, always(0.8), 0.05, 0.2}, 256).gain(), 2);
}

// However bad rows and guesses are, and however they change.
TEST(DraftPolicy, NeverCostsMoreThanItsBudget) {
  for (double (*cost)(int) : {flat, dear, one_by_one})
    for (double right : {0.0, 0.1, 0.3, 0.6, 0.9, 1.0})
      for (double guess : {0.0, 0.3})
        for (double noise : {0.0, 0.3})
          for (bool recurrent : {false, true}) {
            const Course c = run({cost, always(right), guess, noise, recurrent}, 400);
            EXPECT_GE(c.gain(), 0.97) << "right " << right << ", guess " << guess << ", noise " << noise
                                      << ", 8 rows " << cost(8) << (recurrent ? ", recurrent" : "");
          }
}

TEST(DraftPolicy, TurnsItselfOffAndTriesAgain) {
  DraftPolicy length;
  const Machine bad{flat, always(0.02)}, good{flat, always(0.9)};
  run(bad, 300, length);
  const Course off = run(bad, 2000, length);
  EXPECT_LT(off.with_drafts, off.steps / 10);
  EXPECT_GT(off.with_drafts, 0) << "it does not try again";
  EXPECT_GE(off.gain(), 0.985);
  run(good, 300, length);
  EXPECT_GT(run(good, 300, length).gain(), 2) << "it did not come back";
}

TEST(DraftPolicy, IsLongWhereGuessesAreRightAndShortWhereTheyAreNot) {
  auto mean = [](double right) {
    const Course c = run({[](int rows) { return 1 + 0.1 * (rows - 1); }, always(right)}, 1000);
    return double(c.drafted) / c.with_drafts;
  };
  EXPECT_LT(mean(0.4), 4);
  EXPECT_GT(mean(0.95), 7);
}

// Eight rows may be cheaper than two: kernels differ. The lengths between are passed over.
TEST(DraftPolicy, FindsTheRowsThatAreCheap) {
  auto odd = [](int rows) { return rows == 1 ? 1.0 : rows < 7 ? 3.6 : 1.6; };
  EXPECT_GT(run({odd, always(0.97)}, 3000).gain(), 2);
}

TEST(DraftPolicy, StepsThatBecameSlowEndTheDrafts) {
  DraftPolicy length;
  run({flat, always(0.8)}, 300, length);
  const Course c = run({dear, always(0.3)}, 1000, length);
  EXPECT_GE(c.gain(), 0.95) << "what was gained before is spent at most";
}

TEST(DraftPolicy, EstimatesWhatWasNotMeasured) {
  DraftPolicy l;
  EXPECT_EQ(l.costs().cost(4), 0);
  l.costs().took({1, 1, 0, 2.0, 0});
  EXPECT_DOUBLE_EQ(l.costs().cost(4), 8) << "one by one";
  l.costs().took({2, 1, 1, 3.0, 0});
  EXPECT_DOUBLE_EQ(l.costs().cost(3), 4) << "on with the same slope";
  l.costs().took({6, 1, 5, 5.0, 0});
  EXPECT_DOUBLE_EQ(l.costs().cost(4), 4) << "between its neighbours";
  EXPECT_DOUBLE_EQ(l.costs().cost(8), 6);
  EXPECT_DOUBLE_EQ(l.costs().cost(6), 5);
}

// Of a number of rows: the first time may be slow for other reasons, the second one can only lower it, and
// each later one moves the mean, of eight at most, by no more than the mean itself.
TEST(DraftPolicy, CostsAreMeansThatSingleTimesHardlyMove) {
  DraftCosts costs;
  const auto after = [&](double seconds, int rows = 1) {
    costs.took({rows, 1, 0, seconds, 0});
    return costs.cost(rows);
  };
  EXPECT_DOUBLE_EQ(after(10), 10);
  EXPECT_DOUBLE_EQ(after(4), 4) << "the lower one of two";
  EXPECT_DOUBLE_EQ(after(7), 5) << "a third of the way";
  EXPECT_DOUBLE_EQ(after(1000), 6.25) << "a quarter of the way to twice as much";
  for (double expected = 6.25, n = 5; n < 20; n++) {
    expected += (2 - expected) / std::min(n, 8.0);
    EXPECT_DOUBLE_EQ(after(2), expected) << n;
  }
  DraftCosts slower;
  slower.took({1, 1, 0, 4, 0}), slower.took({1, 1, 0, 9, 0});
  EXPECT_DOUBLE_EQ(slower.cost(1), 4);
  // Steps of no rows, and of more than are recorded, change nothing.
  slower.took({0, 1, 0, 1, 0}), slower.took({DraftCosts::kRows + 1, 1, 0, 1, 0});
  EXPECT_DOUBLE_EQ(slower.cost(1), 4);
  EXPECT_DOUBLE_EQ(slower.cost(DraftCosts::kRows + 1), 4.0 * (DraftCosts::kRows + 1));
  EXPECT_DOUBLE_EQ(slower.cost(0), 4) << "as one row";
  slower.took({DraftCosts::kRows, 1, 0, 8, 0});
  EXPECT_DOUBLE_EQ(slower.cost(DraftCosts::kRows), 8);
  EXPECT_DOUBLE_EQ(slower.cost(2), 4 + 4.0 / (DraftCosts::kRows - 1));
}

TEST(DraftPolicy, CostsBeyondTheMeasuredRows) {
  DraftCosts falling;  // more rows were faster: no gain is expected of still more
  falling.took({2, 1, 0, 6, 0}), falling.took({4, 1, 0, 5, 0});
  EXPECT_DOUBLE_EQ(falling.cost(8), 5);
  EXPECT_DOUBLE_EQ(falling.cost(1), 6) << "fewer than were measured";
  DraftCosts steep;  // at most as if rows came one by one
  steep.took({3, 1, 0, 3, 0}), steep.took({4, 1, 0, 8, 0});
  EXPECT_DOUBLE_EQ(steep.cost(5), 10);
  EXPECT_DOUBLE_EQ(steep.cost(8), 16);
}

// A guess for every token is free below 2 in 1000 of a plain step, all kMaxDrafts of them together.
TEST(DraftPolicy, TheTimeOfAGuess) {
  const double most = 0.002 / kMaxDrafts;
  const auto free_after = [](std::initializer_list<DraftCosts::Step> steps) {
    DraftCosts costs;
    costs.took({1, 1, 0, 1, 0});
    EXPECT_FALSE(costs.guesses_are_known());
    for (DraftCosts::Step s : steps) s.rows = 0, costs.took(s);
    EXPECT_TRUE(costs.guesses_are_known());
    return costs.guesses_are_free();
  };
  const auto guesses = [](int drafted, double seconds) {
    return DraftCosts::Step{.drafted = drafted, .drafting = seconds};
  };
  EXPECT_TRUE(free_after({guesses(10, most * 9)}));
  EXPECT_FALSE(free_after({guesses(10, most * 11)}));
  EXPECT_TRUE(free_after({guesses(0, most * 0.9)})) << "none was drafted: the time of one";
  EXPECT_FALSE(free_after({guesses(0, most * 1.1)}));
  // A later time counts an eighth, and as four times the mean at most.
  EXPECT_TRUE(free_after({guesses(1, most * 0.7), guesses(1, 100)}));
  EXPECT_FALSE(free_after({guesses(1, most * 0.75), guesses(1, 100)}));
  EXPECT_TRUE(free_after({guesses(1, most * 1.1), guesses(1, 1e-12)}));
  EXPECT_FALSE(free_after({guesses(1, most * 1.2), guesses(1, 1e-12)}));
}

// Costs of one row for any number of them, and guesses that are right.
DraftPolicy sure_of(double seconds, int texts = 1) {
  DraftPolicy l;
  for (int i = 0; i < 3; i++) l.costs().took({texts, texts, 0, seconds, 0, texts});
  for (int rows = 1; rows <= DraftCosts::kRows; rows++)
    for (int i = 0; i < 3; i++) l.costs().took({rows, texts, 0, seconds, 0, texts});
  l.compared(100, 100);
  return l;
}

TEST(DraftPolicy, DraftsAreBoundedByRoomTextsAndRowsToRepeat) {
  DraftPolicy two;  // rows were measured
  for (int rows : {1, 1, 1, 2, 2, 2}) two.costs().took({rows, rows, rows - 1, 1, 0});
  two.compared(10000, 10000);
  EXPECT_EQ(two.next(15, {}), 3) << "four rows: twice as many as were measured";
  EXPECT_EQ(sure_of(1).next(15, {}), 15);
  EXPECT_EQ(sure_of(1).next(4, {}), 4);
  EXPECT_EQ(sure_of(1).next(4, {.rows = kMaxDrafts}), 4);
  EXPECT_EQ(sure_of(1).next(4, {.rows = kMaxDrafts + 1}), 0) << "too many rows to compute again";
  EXPECT_EQ(sure_of(1, 2).next(4, {.rows = 1, .texts = 1, .tokens = 1}), 4);
  EXPECT_EQ(sure_of(1, 3).next(4, {.rows = 2, .texts = 2, .tokens = 2}), 0) << "three texts";
}

// A gain must be above what times vary by: three in a hundred, for each text.
TEST(DraftPolicy, SmallGainsAreNone) {
  // The second of two texts, where the first one has a draft: 3 tokens from 3 rows, or 4 from 4.
  const auto drafts = [](double four_rows) {
    DraftPolicy l;
    for (int i = 0; i < 3; i++) l.costs().took({2, 2, 0, 1, 0, 2});
    l.costs().took({3, 2, 0, 1, 0, 2});
    l.costs().took({4, 2, 0, four_rows, 0, 2});
    l.compared(10000, 10000);
    return l.next(1, {.rows = 2, .texts = 1, .drafts = 1, .tokens = 2});
  };
  const double most = 4 / (1.06 * 3);
  EXPECT_EQ(drafts(most - 0.001), 1);
  EXPECT_EQ(drafts(most + 0.001), 0);
}

// Rows come one by one, and nine of ten guesses are right: drafts never pay, and are tried where the account
// of 1.5 steps allows it. The length that was tried least recently is next, the shortest of those never
// tried.
TEST(DraftPolicy, TrialsOfLengthsThatAreNotKnown) {
  DraftPolicy l;
  l.costs().took({0, 1, 0, 0, 0.001});  // a guess before any step: nothing to compare its time with
  for (int i = 0; i < 3; i++) l.costs().took({1, 1, 0, 1, 0});
  l.costs().took({16, 16, 15, 16, 0});
  l.compared(10000, 9000);
  EXPECT_NEAR(l.acceptance(), 0.9, 1e-9);
  std::vector<int> tried;
  for (int i = 0; i < 4; i++) {
    tried.push_back(l.next(15, {}));
    const int rows = 1 + tried.back();
    l.costs().took({rows, rows, tried.back(), double(rows), 0});
  }
  EXPECT_EQ(tried, (std::vector<int>{1, 3, 1, 3})) << "seven drafts may lose too much";
}

// Half of the guesses are expected to be right, and none is: each trial costs a step of the account.
TEST(DraftPolicy, TrialsEndWithTheAccount) {
  DraftPolicy l;
  for (int i = 0; i < 3; i++) l.costs().took({1, 1, 0, 1, 0});
  l.costs().took({16, 16, 15, 16, 0});
  std::vector<int> tried;
  for (int i = 0; i < 4; i++) {
    tried.push_back(l.next(15, {}));
    const int rows = 1 + tried.back();
    l.costs().took({rows, 1, tried.back(), double(rows), 0});
  }
  EXPECT_EQ(tried, (std::vector<int>{1, 1, 0, 0}));
}

// A draft of another text is no debt of this one.
TEST(DraftPolicy, DraftsOfOthersAreNoDebt) {
  DraftPolicy l;
  for (int i = 0; i < 3; i++) l.costs().took({2, 2, 0, 1, 0, 2});
  for (int rows : {3, 4}) l.costs().took({rows, 6, rows - 2, 2.9, 0, 2});
  l.compared(10000, 10000);
  EXPECT_EQ(l.next(1, {.rows = 2, .texts = 1, .drafts = 1, .tokens = 2}), 1);
}

TEST(DraftPolicy, ExpectedTokensAreAGeometricSeries) {
  DraftPolicy l;
  EXPECT_DOUBLE_EQ(l.acceptance(), 0.5);
  EXPECT_DOUBLE_EQ(l.expected(0), 1);
  EXPECT_DOUBLE_EQ(l.expected(3), 1.875);
  l.compared(0, 0);
  l.compared(-1, 0);
  EXPECT_DOUBLE_EQ(l.acceptance(), 0.5) << "nothing was compared";
  l.compared(1, 1);
  EXPECT_DOUBLE_EQ(l.acceptance(), (0.5 * 0.97 + 1) / (0.97 + 1));
  l.compared(2, 0);
  const double old = 0.97 * 0.97;
  EXPECT_DOUBLE_EQ(l.acceptance(), (0.5 * 0.97 + 1) * old / ((0.97 + 1) * old + 2));
  l.compared(10000, 10000);
  EXPECT_DOUBLE_EQ(l.expected(7), 8) << "all are right";
}

TEST(DraftPolicy, NothingIsDraftedBeforeAStepIsKnownNorWithoutRoom) {
  DraftPolicy l;
  for (int i = 0; i < 3; i++) {
    EXPECT_EQ(l.next(15, {}), 0);
    l.costs().took({1, 1, 0, 1, 0});
  }
  EXPECT_EQ(l.next(0, {}), 0);
  EXPECT_EQ(l.next(-1, {}), 0);
  l.compared(50, 50);
  EXPECT_EQ(l.next(15, {}), 1) << "from one row to two";
  EXPECT_TRUE(l.costs().guesses_are_free());
  l.costs().took({1, 1, 1, 1, 0.5});
  EXPECT_FALSE(l.costs().guesses_are_free());
}

// Texts that share their steps, and what they learn about costs.
Course run_together(const Machine& m, int texts, int tokens, uint64_t seed = 5) {
  auto costs = std::make_shared<DraftCosts>();
  std::vector<DraftPolicy> lengths;
  while (int(lengths.size()) < texts) lengths.emplace_back(costs);
  Random random(seed);
  Course c;
  while (c.tokens < tokens) {
    BatchLoad all{texts, texts, 0, double(texts)};
    int told = 0;
    std::vector<std::pair<int, int>> compared;
    for (DraftPolicy& l : lengths) {
      const int n = l.next(kMaxDrafts, {all.rows - 1, texts - 1, all.drafts, all.tokens - 1});
      int right = 0;
      while (right < n && random.uniform() < m.right(0)) right++;
      all.rows += n, all.drafts += n, all.tokens += l.expected(n) - 1;
      told += 1 + right;
      compared.push_back({std::min(right + 1, n), right});
    }
    const double took = m.cost(all.rows) * (1 + m.noise * (2 * random.uniform() - 1));
    costs->took({all.rows, told, all.drafts, took, all.drafts * m.guess, texts});
    for (size_t i = 0; i < lengths.size(); i++) lengths[i].compared(compared[i].first, compared[i].second);
    c.seconds += (took + all.drafts * m.guess) / (m.cost(texts) / texts);
    c.tokens += told, c.drafted += all.drafts, c.steps++, c.with_drafts += all.drafts > 0;
  }
  return c;
}

TEST(DraftPolicy, OfSeveralTextsNeverCostsMoreThanItsBudget) {
  for (double (*cost)(int) : {flat, dear, one_by_one})
    for (double right : {0.0, 0.3, 0.6, 1.0})
      for (double guess : {0.0, 0.3})
        for (int texts : {2, 3, 4, 40}) {
          const Course c = run_together({cost, always(right), guess, 0.2}, texts, 1000 * texts);
          EXPECT_GE(c.gain(), 0.97) << "right " << right << ", guess " << guess << ", 8 rows " << cost(8)
                                    << ", " << texts << " texts";
        }
}

TEST(DraftPolicy, OfSeveralTextsPaysWhereRowsAreFreeAndTextsAreFew) {
  EXPECT_GT(run_together({flat, always(0.8)}, 2, 1000).gain(), 1.7);
  EXPECT_EQ(run_together({flat, always(0.8)}, 3, 1000).drafted, 0) << "their rows are many already";
}

TEST(DraftPolicy, ATextBeginsWithWhatOthersTaught) {
  auto costs = std::make_shared<DraftCosts>();
  DraftPolicy first(costs);
  first.compared(200, 190);
  EXPECT_NEAR(DraftPolicy(costs).acceptance(), 0.95, 0.01);
  EXPECT_EQ(DraftPolicy().acceptance(), 0.5);
}

}  // namespace
}  // namespace gimbal::test
