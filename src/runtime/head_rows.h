// The rows of a draft head for the text of its target: one for each position, with the target's state there
// and a token of the text. The target's states arrive with its steps, and are kept until the head needs them.
#pragma once
#include <memory>
#include <optional>

#include "model/draft_head.h"
#include "runtime/model.h"

namespace gimbal {

class HeadRows {
 public:
  // `ahead`: from a state's position to that of its row's token. `model`: the head's, which outlives this.
  // Takes a sequence of it. Errors: OutOfMemory if all sequences are taken.
  static Result<HeadRows> create(Model& model, const DraftHead* head, int ahead);

  // As StepWatcher::computed(). It computes rows of a prompt at once, rows of an answer only for a proposal,
  // so that a text without drafts costs nothing. It drops states that exceed its memory: guesses then rely on
  // a shorter text.
  void computed(std::span<const int32_t> text, int first, std::span<const float> states);
  // Whether the state at this position is known. Forgets later ones, which belong to another text. Errors:
  // of computed().
  Result<bool> ends_at(int last);
  // Computes the rows of the positions up to `last`, but puts the final ones into batch(), without wants: at
  // least `kept` of them, and so few that `spare` more rows fit.
  Status follow(std::span<const int32_t> text, int last, int kept, int spare);
  // The likeliest token by the k-th logits of a step, computed with wanted() and Batch::top 1 or more.
  int32_t likeliest(const StepOutput&, size_t k) const;
  // The same after the head's part for the token `before` it, of the kCandidates likeliest, which are
  // Batch::top.
  Result<int32_t> likeliest(const StepOutput&, size_t k, const MarkovHead&, int32_t before) const;
  Wants wanted() const { return {.logits = !top_, .top = top_}; }
  static constexpr int kCandidates = 64;

  Model& model() const { return *model_; }
  Sequence& sequence() const { return *sequence_; }  // its row j: the state at begin() + j
  int begin() const { return begin_; }
  Batch& batch() { return batch_; }
  // Of a known position.
  const float* state(int position) const { return &states_[size_t(position - first_) * width_]; }
  size_t width() const { return width_; }

 private:
  HeadRows(Model& model, std::unique_ptr<Sequence> sequence, const DraftHead* head, int ahead);
  int room() const { return int(states_.size() / width_); }
  void add(std::span<const int32_t> text, int from, int rows);
  int32_t token_of(size_t logit) const { return tokens_.empty() ? int32_t(logit) : tokens_[logit]; }

  Model* model_;
  std::unique_ptr<Sequence> sequence_;
  std::vector<int32_t> tokens_;  // by logit; empty: the logit's number
  int ahead_;
  bool top_;      // the device finds the largest logit
  size_t width_;  // of the model's states
  int begin_ = 0;
  std::vector<float> states_;  // of `count_` positions from `first_` on
  int first_ = 0, count_ = 0;
  Batch batch_;
  std::optional<Error> failed_;  // in computed()
};

}  // namespace gimbal
