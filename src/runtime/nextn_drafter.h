// Drafts from a file's own layers for multi-token prediction: such a layer takes the model's state at a
// position and the next token, and predicts the token after that. For further guesses it uses its own state
// in place of the model's.
#pragma once
#include <optional>

#include "runtime/drafter.h"
#include "runtime/session.h"

namespace gimbal {

class NextnDrafter final : public Drafter, public StepWatcher {
 public:
  // `model`: made with ModelArch::nextn and RunOptions::states; outlives the drafter, which takes a
  // sequence of it. Errors: OutOfMemory if all sequences are taken.
  static Result<std::unique_ptr<NextnDrafter>> create(Model& model);

  StepWatcher* watcher() override { return this; }
  // Keeps the states until they are needed. It computes rows of a prompt at once, rows of an answer only
  // for a proposal, so that a text without drafts costs nothing. It drops states that exceed its memory:
  // guesses then rely on a shorter text.
  void computed(std::span<const int32_t> text, int first, std::span<const float> states) override;
  // Empty if the states of `text` are unknown, if it exceeds the context, or if it has embeddings.
  Result<std::vector<int32_t>> propose(std::span<const int32_t> text, int n) override;
  std::string name() const override { return "mtp"; }

 private:
  NextnDrafter(Model& model, std::unique_ptr<Sequence> sequence);
  int room() const { return int(states_.size() / width_); }
  // Computes the rows of all positions up to `last`, with the tokens of `text`. `wanted`: also return the
  // last row's logits and state.
  Result<StepOutput> follow(std::span<const int32_t> text, int last, bool wanted);
  Result<StepOutput> step(std::span<const int32_t> tokens, const float* states, bool wanted);
  int32_t likeliest(const StepOutput&) const;

  Model& model_;
  std::unique_ptr<Sequence> sequence_;  // its row j: the state at begin_ + j, and the next token
  const size_t width_;
  int begin_ = 0;
  std::vector<float> states_;  // of `count_` positions from `first_` on
  int first_ = 0, count_ = 0;
  Batch batch_;
  std::optional<Error> failed_;  // from outside a proposal
};

}  // namespace gimbal
