// Drafts from a file's own layers that guess further tokens (multi-token prediction): such a layer is given
// the model's state at a position and the token behind it, and guesses the token after that. Its own state
// takes the model's place for further guesses.
#pragma once
#include <optional>

#include "runtime/drafter.h"
#include "runtime/session.h"

namespace gimbal {

class NextnDrafter final : public Drafter, public StepWatcher {
 public:
  // `model` was made with ModelArch::nextn and RunOptions::states, and outlives it. Takes a sequence of it.
  // Errors: OutOfMemory when all are taken.
  static Result<std::unique_ptr<NextnDrafter>> create(Model& model);

  StepWatcher* watcher() override { return this; }
  // Keeps the states until they are needed. Those of a prompt are computed with at once; those of a text
  // only for a proposal, so that a text without drafts costs nothing. What there is no room for is
  // forgotten: guesses are then made from a shorter text.
  void computed(std::span<const int32_t> text, int first, std::span<const float> states) override;
  // Nothing where the states of `text` are not known, its length is beyond the context, or it has embeddings.
  Result<std::vector<int32_t>> propose(std::span<const int32_t> text, int n) override;
  std::string name() const override { return "mtp"; }

 private:
  NextnDrafter(Model& model, std::unique_ptr<Sequence> sequence);
  int room() const { return int(states_.size() / width_); }
  // Computes the rows of all positions up to `last`, with the tokens of `text`. The last one's logits and
  // state are `wanted`, or not.
  Result<StepOutput> follow(std::span<const int32_t> text, int last, bool wanted);
  Result<StepOutput> step(std::span<const int32_t> tokens, const float* states, bool wanted);
  int32_t likeliest(const StepOutput&) const;

  Model& model_;
  std::unique_ptr<Sequence> sequence_;  // its row j: the state at begin_ + j, and the token behind it
  const size_t width_;
  int begin_ = 0;
  std::vector<float> states_;  // of `count_` positions from `first_` on
  int first_ = 0, count_ = 0;
  Batch batch_;
  std::optional<Error> failed_;  // outside of a proposal
};

}  // namespace gimbal
