#include "runtime/draft_length.h"

#include <algorithm>
#include <cmath>

namespace gimbal {
namespace {

constexpr int kSamples = 3;               // of a step of one row, before anything is drafted
constexpr double kMargin = 1.03;          // by which drafts must pay: times vary by as much
constexpr int kStale = 64;                // steps after which nobody knows how often guesses are right
constexpr double kRisk = 4;               // steps that a trial may lose beyond what is there to pay for it
constexpr int kTrials[] = {1, 3, 7, 15};  // drafts: steps of whole powers of two

}  // namespace

double DraftLength::cost(int rows) const {
  rows = std::max(rows, 1);
  int below = std::min(rows, kRows), above = below;
  while (below > 0 && !costs_[size_t(below)].samples) below--;
  while (above < kRows && !costs_[size_t(above)].samples) above++;
  const Cost &b = costs_[size_t(below)], &a = costs_[size_t(above)];
  if (below == rows || (!b.samples && !a.samples)) return b.seconds;
  if (!b.samples) return a.seconds;
  if (a.samples && above > below)
    return b.seconds + (a.seconds - b.seconds) * (rows - below) / (above - below);
  // Beyond what was measured: on with the last slope, but no more than rows take one by one.
  int before = below - 1;
  while (before > 0 && !costs_[size_t(before)].samples) before--;
  const double slope = before > 0
                           ? std::max(0.0, (b.seconds - costs_[size_t(before)].seconds) / (below - before))
                           : b.seconds / below;
  return std::min(b.seconds + slope * (rows - below), std::max(b.seconds, b.seconds / below * rows));
}

double DraftLength::expected(int drafts) const {
  const double a = acceptance();
  return a > 0.999 ? drafts + 1 : (1 - std::pow(a, drafts + 1)) / (1 - a);
}

double DraftLength::seconds(int drafts, int again) const {
  return cost(1 + again + drafts) + drafts * guess_;
}

bool DraftLength::guesses_are_free() const { return guess_ * kMaxDrafts < 0.002 * cost(1); }

int DraftLength::next(int most, int again) {
  step_++;
  // A step without drafts ends what must be computed anew.
  if (most <= 0 || again > kMaxDrafts || costs_[1].samples < kSamples) return 0;
  // Steps grow by twice what was tried: an estimate is worth little far from what was measured.
  const int limit = std::min(most, std::max(1, 2 * largest_ - 1 - again));
  double best = kMargin / cost(1 + again);
  int drafts = 0;
  for (int k = 1; k <= limit; k++)
    if (const double rate = expected(k) / seconds(k, again); rate > best) best = rate, drafts = k;
  return drafts && credit(again) >= 0 ? drafts : trial(limit, again);
}

// Rows that must be computed anew are a debt, too.
double DraftLength::credit(int again) const { return credit_ - (cost(1 + again) / cost(1) - 1); }

// The length that was not tried for the longest time, among those that can be paid for.
int DraftLength::trial(int most, int again) const {
  const bool stale = step_ - compared_ >= kStale;
  const double one = cost(1);
  int drafts = 0;
  long oldest = step_;
  for (int k : kTrials) {
    if (k > most || (expected(k) < 1.1 && !stale)) continue;
    const Cost& known = costs_[size_t(std::min(1 + again + k, kRows))];
    double taken = seconds(k, again);
    // The first step of its size may have prepared something: once is not enough to give it up.
    if (known.samples < 2) taken = std::min(taken, (1 + again + k) * one + k * guess_);
    const double loss = (taken - cost(1 + again)) / one + 1 - expected(k), worst = loss + expected(k) - 1;
    if (loss > credit(again) || worst > credit(again) + kRisk || known.when >= oldest) continue;
    oldest = known.when, drafts = k;
  }
  return drafts;
}

void DraftLength::took(const Step& s) {
  if (s.rows >= 1 && s.rows <= kRows) {
    Cost& c = costs_[size_t(s.rows)];
    c.samples++;
    c.when = step_;
    // The first may have been slow for a reason of its own; and no single one may change much.
    if (c.samples == 1) c.seconds = s.seconds;
    else if (c.samples == 2) c.seconds = std::min(c.seconds, s.seconds);
    else c.seconds += (std::min(s.seconds, 2 * c.seconds) - c.seconds) / std::min(c.samples, 8);
    largest_ = std::max(largest_, s.rows);
  }
  if (s.drafting > 0) {
    const double each = s.drafting / std::max(1, s.drafted);
    guess_ += guess_ > 0 ? (std::min(each, 4 * guess_) - guess_) / 8 : each;
  }
  const double one = cost(1);
  if (one <= 0) return;
  double gained = -s.drafting / one;
  if (s.rows > 1) gained += s.tokens - s.seconds / one;
  credit_ = std::min(kMost, credit_ + gained + kBudget * s.tokens);
}

void DraftLength::compared(int tried, int right) {
  if (tried <= 0) return;
  const double old = std::pow(0.97, tried);
  tried_ = tried_ * old + tried, right_ = right_ * old + right;
  compared_ = step_;
}

}  // namespace gimbal
