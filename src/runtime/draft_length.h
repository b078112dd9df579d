// How many tokens to draft for the next step: as many as pay, from what steps of so many rows took and how
// often guesses were right. Knows no clock and no model, so that it can be tested by itself.
//
// The law: drafting costs at most kBudget of the time that the text takes without it, and kStart steps. Every
// step is booked: what it gained or lost against steps of one row, and kBudget of each token. Nothing is
// drafted on debt; trials, which tell whether drafts would pay now, are made when they can be paid for.
#pragma once
#include <array>

#include "runtime/model_plan.h"

namespace gimbal {

class DraftLength {
 public:
  // Tokens to draft at most `most` of; 0: none. `again`: rows that the step must compute anew besides.
  int next(int most, int again);

  struct Step {
    int rows = 1;         // computed
    int tokens = 1;       // of the text that they gave
    int drafted = 0;      // of the rows
    double seconds = 0;   // for the rows
    double drafting = 0;  // seconds for the guess, whether its rows were computed or not
  };
  void took(const Step&);
  // A guess was compared with the text: its first `tried` tokens, of which `right` were the text's.
  void compared(int tried, int right);

  // Guessing takes so little that it can be done for each token, to see how often it is right.
  bool guesses_are_free() const;
  bool guesses_are_known() const { return guess_ > 0; }
  double acceptance() const { return right_ / tried_; }
  // Seconds of a step of so many rows, measured or estimated from its neighbours; 0: nothing is known.
  double cost(int rows) const;

  static constexpr double kBudget = 0.01, kStart = 1.5, kMost = 16;  // the last two in steps of one row
  static constexpr int kRows = 2 * kMaxDrafts + 2;                   // beyond them nothing is learnt

 private:
  struct Cost {
    double seconds = 0;
    int samples = 0;
    long when = -1;  // the step of the last one
  };
  double expected(int drafts) const;  // tokens that a step with so many drafts gives
  double seconds(int drafts, int again) const;
  double credit(int again) const;
  int trial(int most, int again) const;

  std::array<Cost, kRows + 1> costs_ = {};
  double guess_ = 0;                // seconds for a token of a guess; 0: not known
  double tried_ = 1, right_ = 0.5;  // tokens, the older ones counting less
  double credit_ = kStart;          // in steps of one row
  long step_ = 0, compared_ = 0;    // steps so far; at the last comparison
  int largest_ = 0;                 // rows measured
};

}  // namespace gimbal
