// How many tokens to draft for the next step: as many as pay, from what steps of so many rows took and how
// often guesses were right. Knows no clock and no model, so that it can be tested by itself.
//
// The law: drafting costs at most kBudget of the time that the texts take without it, and kStart steps. Every
// step is booked: what it gained or lost against plain steps, which give each text a token, and kBudget of
// each token. Nothing is drafted on debt; trials, which tell whether drafts would pay now, are made when they
// can be paid for.
#pragma once
#include <array>
#include <memory>

#include "runtime/model_plan.h"

namespace gimbal {

// What steps took and what drafts gained, of all texts that a model computes, alone or together.
class DraftBooks {
 public:
  struct Step {
    int rows = 1;         // computed
    int tokens = 1;       // of the texts that they gave
    int drafted = 0;      // of the rows
    double seconds = 0;   // for the rows
    double drafting = 0;  // seconds for the guesses, whether their rows were computed or not
    int texts = 1;        // that had a part in it: a plain step has so many rows, and gives so many tokens
  };
  void took(const Step&);

  // Seconds of a step of so many rows, measured or estimated from its neighbours; 0: nothing is known.
  double cost(int rows) const;
  // Guessing takes so little that it can be done for each token, to see how often it is right.
  bool guesses_are_free() const;
  bool guesses_are_known() const { return guess_ > 0; }

  static constexpr double kBudget = 0.01, kStart = 1.5, kMost = 16;  // the last two in plain steps
  static constexpr int kRows = 2 * kMaxDrafts + 2;                   // beyond them nothing is learnt

 private:
  friend class DraftLength;
  struct Cost {
    double seconds = 0;
    int samples = 0;
    long when = -1;  // the step of the last one
  };

  std::array<Cost, kRows + 1> costs_ = {};
  double guess_ = 0;                // seconds for a token of a guess; 0: not known
  double tried_ = 1, right_ = 0.5;  // tokens of all texts, the older ones counting less
  double credit_ = kStart;          // in plain steps
  long step_ = 0;                   // steps so far
  int largest_ = 0;                 // rows measured
};

// With more texts in a step nothing is drafted: measured times vary by more than the gain.
inline constexpr int kMostDraftedTexts = 2;

// What a step has besides a text's next row and its drafts.
struct Beside {
  int rows = 0;       // of other texts, and those that must be computed anew
  int texts = 0;      // others, which get a token in any case
  int drafts = 0;     // of theirs, among the rows
  double tokens = 0;  // that they are expected to get
};

// Of one text.
class DraftLength {
 public:
  // What is not known of this text is taken from the others in the books.
  explicit DraftLength(std::shared_ptr<DraftBooks> books = std::make_shared<DraftBooks>());

  // Tokens to draft, at most `most`; 0: none. Where texts share a step, they are asked one after the other,
  // and each is told what those before it draft.
  int next(int most, const Beside& beside);
  // A guess was compared with the text: its first `tried` tokens, of which `right` were the text's.
  void compared(int tried, int right);

  double acceptance() const { return right_ / tried_; }
  double expected(int drafts) const;  // tokens that a step with so many drafts gives
  DraftBooks& books() { return *books_; }
  const DraftBooks& books() const { return *books_; }

 private:
  double credit(const Beside&) const;
  int trial(int most, const Beside&) const;

  std::shared_ptr<DraftBooks> books_;
  double tried_, right_;  // tokens, the older ones counting less
  long compared_;         // the step of the last comparison
};

}  // namespace gimbal
