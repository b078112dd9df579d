// Drafts from a model's states: by the file's own layers for multi-token prediction, or by a draft head in a
// file of its own (model/draft_head.h). Both take the model's state at a position and the next token, and
// predict the token after that. For further guesses they use their own state in place of the model's, at the
// next position or, if the head stays, at the same one.
#pragma once
#include <optional>

#include "model/draft_head.h"
#include "runtime/drafter.h"
#include "runtime/session.h"

namespace gimbal {

class NextnDrafter final : public Drafter, public StepWatcher {
 public:
  // `model`: made with ModelArch::nextn, or of the draft head, and RunOptions::states; outlives the drafter,
  // which takes a sequence of it. Errors: OutOfMemory if all sequences are taken.
  static Result<std::unique_ptr<NextnDrafter>> create(Model& model, const DraftHead* head = nullptr);

  StepWatcher* watcher() override { return this; }
  // Keeps the states until they are needed. It computes rows of a prompt at once, rows of an answer only
  // for a proposal, so that a text without drafts costs nothing. It drops states that exceed its memory:
  // guesses then rely on a shorter text.
  void computed(std::span<const int32_t> text, int first, std::span<const float> states) override;
  // Empty if the states of `text` are unknown, if it exceeds the context, or if it has embeddings.
  Result<std::vector<int32_t>> propose(std::span<const int32_t> text, int n) override;
  std::string name() const override { return name_; }

 private:
  NextnDrafter(Model& model, std::unique_ptr<Sequence> sequence, const DraftHead* head);
  int room() const { return int(states_.size() / width_); }
  // Computes the rows of all positions up to `last`, with the tokens of `text`. `wanted`: also return the
  // last row's logits and state.
  Result<StepOutput> follow(std::span<const int32_t> text, int last, bool wanted);
  // `own`: the states are this model's own.
  Result<StepOutput> step(std::span<const int32_t> tokens, const float* states, bool own, bool wanted);
  // A further guess: the last token guessed, and this model's state of the one before.
  Result<StepOutput> again(std::span<const int32_t> guess, const StepOutput& before, int last);
  int32_t likeliest(const StepOutput&) const;

  Model& model_;
  std::unique_ptr<Sequence> sequence_;  // its row j: the state at begin_ + j, and the next token
  const std::vector<int32_t> tokens_;   // by logit; empty: the logit's number
  const std::string name_;              // for people
  const bool stays_;                    // DraftHead::stays
  const size_t width_;                  // of the model's states
  int begin_ = 0;
  std::vector<float> states_;  // of `count_` positions from `first_` on
  int first_ = 0, count_ = 0;
  std::vector<float> row_;  // the states of a further guess that stays
  Batch batch_;
  std::optional<Error> failed_;  // from outside a proposal
};

}  // namespace gimbal
