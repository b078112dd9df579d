// The input of one step of a model: rows of any of its sequences, and the outputs requested for each.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/sequence.h"
#include "runtime/top_logits.h"

namespace gimbal {

struct Wants {
  bool logits = false;  // one number per token of the vocabulary
  bool top = false;     // the Batch::top largest of them
  bool hidden = false;  // f32[ModelPlan::width(Hidden)]; with RunOptions::hidden, or an encoder
  bool any() const { return logits || top || hidden; }
};

struct Row {
  Sequence* sequence;  // of the model
  int32_t token;       // kNoToken for an embedding
  int32_t position;    // the sequence's next: computed(), then one more for each of its rows in the batch
  Wants wants;
  // Beside the token, if the model takes states: f32[ModelPlan::takes_states]; read by forward(). Or the
  // model's own of an earlier row: f32[width(Output::States)].
  const float* state = nullptr;
  bool own_state = false;
  // In place of a token, for a model loaded with RunOptions::embeddings: this row of `*embeddings`, read by
  // forward().
  const EmbeddingsPtr* embeddings = nullptr;
  int embedding = 0;
  // Beside token 0, of an encoder of pictures (ModelPlan::takes_patches); read by forward().
  const PatchRow* patch = nullptr;

  Row(Sequence* sequence, int32_t token, int32_t position, Wants wants, const float* state = nullptr)
      : sequence(sequence), token(token), position(position), wants(wants), state(state) {}
  Row(Sequence* sequence, const InputItem& input, int32_t position, Wants wants)
      : sequence(sequence),
        token(input.token),
        position(position),
        wants(wants),
        embeddings(input.of),
        embedding(input.row) {}
  InputItem input() const { return {token, embeddings, embedding}; }
};

// Rows in any order of sequences; the rows of one sequence by rising position. A row's results do not
// depend on other sequences' rows, nor on how a sequence's rows are divided into batches. If rows attend to
// later ones (ModelPlan::whole_texts), a sequence's rows must all be in one batch; so must the rows of a
// block that a draft head guesses (runtime/block_drafter.h).
struct Batch {
  std::vector<Row> rows;
  int top = 0;          // number of largest logits for rows with Wants::top
  bool states = false;  // StepOutput::state() of every row; with RunOptions::states
  // Called between the parts of a step of a model with RunOptions::interruptible: the number of computed
  // parts, and of all. False ends the step with reason::kCancelled. May be empty.
  std::function<bool(size_t done, size_t parts)> go_on = {};
};

// The results of a batch; valid until the model computes again. `k` counts the rows with any Wants, in the
// batch's order.
class StepOutput {
 public:
  std::span<const float> logits(size_t k) const { return logits_.subspan(k * vocabulary_, vocabulary_); }
  std::span<const float> hidden(size_t k) const { return hidden_.subspan(k * width_, width_); }
  // With Batch::states: of the batch's row i; of consecutive rows; of all rows.
  std::span<const float> state(size_t i) const { return states(i, 1); }
  std::span<const float> states(size_t first, size_t rows) const {
    return states_.subspan(first * state_width_, rows * state_width_);
  }
  std::span<const float> states() const { return states_; }
  TopLogits top(size_t k) const {
    const std::span<const float> row = top_.subspan(k * 2 * found_, 2 * found_);
    return {row.first(asked_), row.subspan(found_, asked_)};
  }

 private:
  friend class Steps;
  std::span<const float> logits_, hidden_, top_, states_;
  size_t vocabulary_ = 0, width_ = 0, found_ = 0, asked_ = 0, state_width_ = 0;
};

}  // namespace gimbal
