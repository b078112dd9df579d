// Drafts from the text itself: where its last tokens stood before, what followed them there may follow again.
// Good at code that is edited, at summaries and quotations, at lists.
#pragma once
#include "runtime/drafter.h"

namespace gimbal {

class NgramDrafter final : public Drafter {
 public:
  // Of all earlier places that end with the same tokens, at least kLeast of them, the longest match; of equal
  // ones the latest. A match that reaches into what it predicts goes on with its own guess: a text that
  // repeats itself is repeated.
  Result<std::vector<int32_t>> propose(std::span<const int32_t> text, int n) override;
  std::string name() const override { return "ngram"; }

  static constexpr size_t kLeast = 2, kLongest = 16;  // tokens that are compared
};

}  // namespace gimbal
