// A drafter for measurements and tests only: it gets the text in advance and is right at a given
// rate.
#pragma once
#include "runtime/drafter.h"
#include "runtime/random.h"

namespace gimbal {

class ScriptedDrafter final : public Drafter {
 public:
  // `text`: the prompt and the answer generated without drafts. Each proposed token is right with
  // probability `right`, by the drafter's own random numbers; else it is another token. Proposes nothing
  // after the end of `text`.
  ScriptedDrafter(std::vector<int32_t> text, double right, int vocabulary, uint64_t seed = 1)
      : text_(std::move(text)), right_(right), vocabulary_(vocabulary), random_(seed) {}

  Result<std::vector<int32_t>> propose(std::span<const int32_t> text, int n) override {
    std::vector<int32_t> guess;
    for (size_t i = text.size(); i < text_.size() && int(guess.size()) < n; i++)
      guess.push_back(random_.uniform() < right_ ? text_[i] : (text_[i] + 1) % vocabulary_);
    return guess;
  }
  std::string name() const override { return "scripted"; }

 private:
  const std::vector<int32_t> text_;
  const double right_;
  const int vocabulary_;
  Random random_;
};

}  // namespace gimbal
