// Guesses the next tokens of a text. A guess never changes the text: the model's results decide
// (text_state.h). A right guess only saves time.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace gimbal {

class StepWatcher;  // runtime/session.h

class Drafter {
 public:
  virtual ~Drafter() = default;
  // Receives the states of the computed rows (RunOptions::states); nullptr: needs none.
  virtual StepWatcher* watcher() { return nullptr; }
  // Prepares proposals after `text`, which was computed at once, as prompts are. Errors: as
  // propose().
  virtual Status read(std::span<const int32_t> text) { return (void)text, Done{}; }
  // Returns at most n tokens that may follow `text`; fewer or none without a good guess. `text` need not
  // continue the text of the call before. Errors: those of its computations; the text then continues
  // without drafts.
  virtual Result<std::vector<int32_t>> propose(std::span<const int32_t> text, int n) = 0;
  virtual std::string name() const = 0;  // for people: "ngram"
};

}  // namespace gimbal
