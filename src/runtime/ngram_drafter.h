// Drafts from the text itself: finds an earlier occurrence of its last tokens and proposes the tokens that
// followed there. Good for edited code, summaries, quotations and lists.
#pragma once
#include "runtime/drafter.h"

namespace gimbal {

class NgramDrafter final : public Drafter {
 public:
  // Uses the longest match of at least kLeast tokens; of equal ones the latest. A match
  // that reaches the end of the text continues with its own guess, so a repetition
  // continues.
  Result<std::vector<int32_t>> propose(std::span<const int32_t> text, int n) override;
  std::string name() const override { return "ngram"; }

  static constexpr size_t kLeast = 2, kLongest = 16;  // tokens that are compared
};

}  // namespace gimbal
