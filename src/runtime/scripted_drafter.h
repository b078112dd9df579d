// A drafter for measurements and tests, never for use: it is told the text beforehand and is right as often
// as is asked of it.
#pragma once
#include "runtime/drafter.h"
#include "runtime/random.h"

namespace gimbal {

class ScriptedDrafter final : public Drafter {
 public:
  // `text`: prompt and all that was generated behind it without drafts. Each token of a proposal is the right
  // one with the probability `right`, by random numbers of its own; else another one of the vocabulary.
  // Nothing is proposed behind the end of `text`.
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
