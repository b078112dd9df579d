// Drafts from a model's states: by the file's own layers for multi-token prediction, or by a draft head in a
// file of its own (model/draft_head.h). Both take the model's state at a position and the next token, and
// predict the token after that. For further guesses they use their own state in place of the model's, at the
// next position or, if the head stays, at the same one.
#pragma once
#include "runtime/head_drafter.h"

namespace gimbal {

class NextnDrafter final : public HeadDrafter {
 public:
  // `model`: made with ModelArch::nextn, or of the draft head, and RunOptions::states; outlives the drafter,
  // which takes a sequence of it. Errors: OutOfMemory if all sequences are taken.
  static Result<std::unique_ptr<NextnDrafter>> create(Model& model, const DraftHead* head = nullptr);

  // Empty if the states of `text` are unknown, if it exceeds the context, or if it has embeddings.
  Result<std::vector<int32_t>> propose(std::span<const int32_t> text, int n) override;

 private:
  NextnDrafter(HeadRows rows, const DraftHead* head);
  // One row: the token, and the model's state before it; or this model's own, `own`.
  Result<StepOutput> step(int32_t token, const float* state, bool own, bool wanted);
  // Computes the batch; `wanted`: also returns the last row's logits and state.
  Result<StepOutput> compute(bool wanted);
  // A further guess: the last token guessed, and this model's state of the one before.
  Result<StepOutput> again(int32_t guess, const StepOutput& before, int last);

  const bool stays_;        // DraftHead::stays
  std::vector<float> row_;  // the states of a further guess that stays
};

}  // namespace gimbal
