// Drafts for many texts at once: which texts get some, and how many, so that a step which computes them pays.
// A draft never changes an answer: the sampler picks behind each row in turn, with the random numbers and
// constraints that it would have without, and a draft counts as long as it is what was picked.
#pragma once
#include <functional>
#include <memory>

#include "runtime/drafting.h"

namespace gimbal {

class Generation;

struct DraftOptions {
  // Who guesses for a request that begins to run; nullptr: nobody is free. Empty: there are no drafts.
  std::function<std::unique_ptr<Drafter>(const Generation&)> drafter;
  Drafting::Length length = Drafting::Length::Adapts;
  Drafting::Failed failed;  // see runtime/drafting.h
};

// Of one thread.
class Speculation {
 public:
  explicit Speculation(const DraftOptions& options) : options_(options) {}

  // Gives it a drafter, if it has none and one is free.
  void join(Generation&) const;

  // ---- a step of texts that get their next tokens
  // So many texts, and rows for them without drafts.
  void begin(int texts, int rows);
  // Drafts behind one of them, at most `most`; valid until it is asked again. Errors: what the options'
  // `failed` answered; its text then has to end.
  Result<std::span<const int32_t>> propose(Generation&, int most);
  int drafts() const { return beside_.drafts; }  // of all that were asked
  // What became of it, when it had no other rows: the tokens of all texts, and the seconds that it took.
  void took(int tokens, double seconds);

 private:
  const DraftOptions options_;
  const std::shared_ptr<DraftBooks> books_ = std::make_shared<DraftBooks>();
  Beside beside_;  // all texts of the step, with what was drafted until now
  int guessed_ = 0;
  double guessing_ = 0;  // seconds
};

}  // namespace gimbal
