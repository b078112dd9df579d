// Drafts from a model's states: by the file's own layers for multi-token prediction, or by a draft head in a
// file of its own (model/draft_head.h). Both take the model's state at a position and the next token, and
// predict the token after that. For further guesses they use their own state in place of the model's.
#pragma once
#include <optional>

#include "runtime/drafter.h"
#include "runtime/session.h"

namespace gimbal {

class NextnDrafter final : public Drafter, public StepWatcher {
 public:
  // `model`: made with ModelArch::nextn, or of a draft head, and RunOptions::states; outlives the drafter,
  // which takes a sequence of it. `tokens`: DraftHead::tokens. `name`: for people. Errors: OutOfMemory if
  // all sequences are taken.
  static Result<std::unique_ptr<NextnDrafter>> create(Model& model, std::vector<int32_t> tokens = {},
                                                      std::string name = "mtp");

  StepWatcher* watcher() override { return this; }
  // Keeps the states until they are needed. It computes rows of a prompt at once, rows of an answer only
  // for a proposal, so that a text without drafts costs nothing. It drops states that exceed its memory:
  // guesses then rely on a shorter text.
  void computed(std::span<const int32_t> text, int first, std::span<const float> states) override;
  // Empty if the states of `text` are unknown, if it exceeds the context, or if it has embeddings.
  Result<std::vector<int32_t>> propose(std::span<const int32_t> text, int n) override;
  std::string name() const override { return name_; }

 private:
  NextnDrafter(Model& model, std::unique_ptr<Sequence> sequence, std::vector<int32_t> tokens,
               std::string name);
  int room() const { return int(states_.size() / width_); }
  // Computes the rows of all positions up to `last`, with the tokens of `text`. `wanted`: also return the
  // last row's logits and state.
  Result<StepOutput> follow(std::span<const int32_t> text, int last, bool wanted);
  // `own`: the states are this model's own.
  Result<StepOutput> step(std::span<const int32_t> tokens, const float* states, bool own, bool wanted);
  int32_t likeliest(const StepOutput&) const;

  Model& model_;
  std::unique_ptr<Sequence> sequence_;  // its row j: the state at begin_ + j, and the next token
  const std::vector<int32_t> tokens_;   // by logit; empty: the logit's number
  const std::string name_;
  const size_t width_;  // of the model's states
  int begin_ = 0;
  std::vector<float> states_;  // of `count_` positions from `first_` on
  int first_ = 0, count_ = 0;
  Batch batch_;
  std::optional<Error> failed_;  // from outside a proposal
};

}  // namespace gimbal
