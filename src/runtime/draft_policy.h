// Chooses how many tokens to draft for the next step, from measured times of steps by number of rows and
// from the acceptance rate. Knows no clock and no model, so that tests can run it alone.
//
// The rule: drafting costs at most kBudget of the time that the texts take without it, plus kStart steps.
// Each step is booked: its gain or loss against plain steps, which give each text a token, plus kBudget of
// each token. Stop drafting while the accumulated cost exceeds the budget; run a trial, which measures
// whether drafts pay now, once the budget allows.
#pragma once
#include <array>
#include <memory>

#include "runtime/model_plan.h"

namespace gimbal {

// The costs of steps and the gains of drafts, over all texts of a model.
class DraftCosts {
 public:
  struct Step {
    int rows = 1;         // computed
    int tokens = 1;       // new tokens of the texts
    int drafted = 0;      // of the rows
    double seconds = 0;   // for the rows
    double drafting = 0;  // seconds for the guesses, computed or not
    int texts = 1;        // texts in the step; a plain step has one row and one token for each
  };
  void took(const Step&);

  // Seconds of a step of `rows` rows, measured or estimated from neighbours; 0: unknown.
  double cost(int rows) const;
  // Guessing is so cheap that every token can get a guess, to measure the acceptance rate.
  bool guesses_are_free() const;
  bool guesses_are_known() const { return guess_ > 0; }

  static constexpr double kBudget = 0.01, kStart = 1.5, kMost = 16;  // the last two in plain steps
  static constexpr int kRows = 2 * kMaxDrafts + 2;                   // steps with more are not recorded

 private:
  friend class DraftPolicy;
  struct Cost {
    double seconds = 0;
    int samples = 0;
    long when = -1;  // the step of the last one
  };

  std::array<Cost, kRows + 1> costs_ = {};
  double guess_ = 0;                // seconds for a token of a guess; 0: unknown
  double tried_ = 1, right_ = 0.5;  // tokens of all texts, the older ones counting less
  double credit_ = kStart;          // in plain steps
  long step_ = 0;                   // steps so far
  int largest_ = 0;                 // rows measured
};

// Steps with more texts get no drafts: measured times vary by more than the gain.
inline constexpr int kMostDraftedTexts = 2;

// The contents of a step besides a text's next row and its drafts.
struct BatchLoad {
  int rows = 0;       // of other texts, and rows to compute again
  int texts = 0;      // other texts, each of which gets a token in any case
  int drafts = 0;     // drafts of other texts, among the rows
  double tokens = 0;  // expected tokens of the other texts
};

// The draft length of one text.
class DraftPolicy {
 public:
  // Starts from the values of other texts in the books.
  explicit DraftPolicy(std::shared_ptr<DraftCosts> costs = std::make_shared<DraftCosts>());

  // Tokens to draft, 0 to `most`. If texts share a step, call it for one after the other; `load` holds
  // the drafts of those before.
  int next(int most, const BatchLoad& load);
  // Records a comparison of a guess with the text: of its first `tried` tokens, `right` were equal.
  void compared(int tried, int right);

  double acceptance() const { return right_ / tried_; }
  double expected(int drafts) const;  // expected tokens of a step with `drafts` drafts
  DraftCosts& costs() { return *costs_; }
  const DraftCosts& costs() const { return *costs_; }

 private:
  double credit(const BatchLoad&) const;
  int trial(int most, const BatchLoad&) const;

  std::shared_ptr<DraftCosts> costs_;
  double tried_, right_;  // tokens, the older ones counting less
  long compared_;         // the step of the last comparison
};

}  // namespace gimbal
