#include "runtime/draft_policy.h"

#include <algorithm>
#include <cmath>

namespace gimbal {
namespace {

constexpr int kSamples = 3;               // of a plain step, before the first drafts
constexpr double kMargin = 0.03;          // least relative gain of drafts: times vary by this much
constexpr int kStale = 64;                // steps after which an acceptance rate is out of date
constexpr double kRisk = 4;               // steps that a trial may lose beyond its budget
constexpr int kTrials[] = {1, 3, 7, 15};  // drafts: steps of whole powers of two

}  // namespace

double DraftCosts::cost(int rows) const {
  rows = std::max(rows, 1);
  int below = std::min(rows, kRows), above = below;
  while (below > 0 && !costs_[size_t(below)].samples) below--;
  while (above < kRows && !costs_[size_t(above)].samples) above++;
  const Cost &b = costs_[size_t(below)], &a = costs_[size_t(above)];
  if (below == rows || (!b.samples && !a.samples)) return b.seconds;
  if (!b.samples) return a.seconds;
  if (a.samples && above > below)
    return b.seconds + (a.seconds - b.seconds) * (rows - below) / (above - below);
  // Beyond the measured rows: continues the last slope, but at most the cost of rows one by one.
  int before = below - 1;
  while (before > 0 && !costs_[size_t(before)].samples) before--;
  const double slope = before > 0
                           ? std::max(0.0, (b.seconds - costs_[size_t(before)].seconds) / (below - before))
                           : b.seconds / below;
  return std::min(b.seconds + slope * (rows - below), std::max(b.seconds, b.seconds / below * rows));
}

bool DraftCosts::guesses_are_free() const { return guess_ * kMaxDrafts < 0.002 * cost(1); }

void DraftCosts::took(const Step& s) {
  if (s.rows >= 1 && s.rows <= kRows) {
    Cost& c = costs_[size_t(s.rows)];
    c.samples++;
    c.when = step_;
    // The first sample may be slow for other reasons; and no single one may change much.
    if (c.samples == 1) c.seconds = s.seconds;
    else if (c.samples == 2) c.seconds = std::min(c.seconds, s.seconds);
    else c.seconds += (std::min(s.seconds, 2 * c.seconds) - c.seconds) / std::min(c.samples, 8);
    largest_ = std::max(largest_, s.rows);
  }
  step_++;
  if (s.drafting > 0) {
    const double each = s.drafting / std::max(1, s.drafted);
    guess_ += guess_ > 0 ? (std::min(each, 4 * guess_) - guess_) / 8 : each;
  }
  const double plain = cost(s.texts);
  if (plain <= 0) return;
  double gained = -s.drafting / plain;
  if (s.rows > s.texts) gained += double(s.tokens) / s.texts - s.seconds / plain;
  credit_ = std::min(kMost, credit_ + gained + kBudget * s.tokens / s.texts);
}

DraftPolicy::DraftPolicy(std::shared_ptr<DraftCosts> costs)
    : costs_(std::move(costs)),
      tried_(1),
      right_(costs_->right_ / costs_->tried_),
      compared_(costs_->step_) {}

double DraftPolicy::expected(int drafts) const {
  const double a = acceptance();
  return a > 0.999 ? drafts + 1 : (1 - std::pow(a, drafts + 1)) / (1 - a);
}

int DraftPolicy::next(int most, const BatchLoad& load) {
  const DraftCosts& b = *costs_;
  const int plain = 1 + load.texts, before = 1 + load.rows;
  // A step without drafts computes all rows that had to be computed again.
  if (most <= 0 || plain > kMostDraftedTexts || load.rows > kMaxDrafts ||
      b.costs_[size_t(plain)].samples < kSamples)
    return 0;
  // Steps grow to at most twice the largest measured one: far estimates are worth little.
  const int limit = std::min(most, std::max(1, 2 * b.largest_ - before));
  // In a step of several texts, one text's gain is a smaller part, but times vary as much.
  double best = (1 + kMargin * plain) * (load.tokens + 1) / b.cost(before);
  int drafts = 0;
  for (int k = 1; k <= limit; k++) {
    const double rate = (load.tokens + expected(k)) / (b.cost(before + k) + k * b.guess_);
    if (rate > best) best = rate, drafts = k;
  }
  return drafts && credit(load) >= 0 ? drafts : load.drafts ? 0 : trial(limit, load);
}

// Rows to compute again are a debt, too.
double DraftPolicy::credit(const BatchLoad& load) const {
  const DraftCosts& b = *costs_;
  return b.credit_ - (b.cost(1 + load.rows - load.drafts) / b.cost(1 + load.texts) - 1);
}

// Of the affordable lengths, the least recently tried one.
int DraftPolicy::trial(int most, const BatchLoad& load) const {
  const DraftCosts& b = *costs_;
  const bool stale = b.step_ - compared_ >= kStale;
  const int texts = 1 + load.texts, before = 1 + load.rows;
  const double plain = b.cost(texts), may_lose = credit(load);
  int drafts = 0;
  long oldest = b.step_;
  for (int k : kTrials) {
    if (k > most || (expected(k) < 1.1 && !stale)) continue;
    const auto& known = b.costs_[size_t(std::min(before + k, DraftCosts::kRows))];
    double taken = b.cost(before + k) + k * b.guess_;
    // The first step of its size may have prepared something: one trial is not enough to reject it.
    if (known.samples < 2) taken = std::min(taken, plain * (before + k) / texts + k * b.guess_);
    const double more = (taken - b.cost(before)) / plain, gain = (expected(k) - 1) / texts;
    if (more - gain > may_lose || more > may_lose + kRisk || known.when >= oldest) continue;
    oldest = known.when, drafts = k;
  }
  return drafts;
}

void DraftPolicy::compared(int tried, int right) {
  if (tried <= 0) return;
  const double old = std::pow(0.97, tried);
  tried_ = tried_ * old + tried, right_ = right_ * old + right;
  costs_->tried_ = costs_->tried_ * old + tried, costs_->right_ = costs_->right_ * old + right;
  compared_ = costs_->step_;
}

}  // namespace gimbal
