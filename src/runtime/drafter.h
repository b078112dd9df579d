// Guesses how a text goes on. A guess never changes the text: what the model computes decides (text_state.h).
// It only saves time where it is right.
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
  // Wants to know the states of the rows that are computed (RunOptions::states); nullptr: does not.
  virtual StepWatcher* watcher() { return nullptr; }
  // `text` was computed at once, as prompts are: what proposals need of it is prepared now. Errors: as
  // propose().
  virtual Status read(std::span<const int32_t> text) { return (void)text, Done{}; }
  // At most n tokens that may follow `text`; fewer, or none, where it has no idea. `text` may be any other
  // one than that of the call before, or its beginning. Errors: those of what it computes with; the text goes
  // on without drafts then.
  virtual Result<std::vector<int32_t>> propose(std::span<const int32_t> text, int n) = 0;
  virtual std::string name() const = 0;  // for people: "ngram"
};

}  // namespace gimbal
