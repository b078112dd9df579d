// One conversation: a sequence of a model, computed in batches of its own. It can continue on another model:
// other devices, the same inputs.
#pragma once
#include <functional>
#include <span>

#include "runtime/device_lost.h"
#include "runtime/model.h"
#include "runtime/prefix_store.h"
#include "runtime/text_state.h"

namespace gimbal {

// Observes the steps of a session.
class StepWatcher {
 public:
  virtual ~StepWatcher() = default;
  // Called after each step: the session's text, the position of the step's first row, and f32[rows, width],
  // the states of its rows (Output::States), valid during the call.
  virtual void computed(std::span<const int32_t> text, int first, std::span<const float> states) = 0;
};

class Session {
 public:
  // Takes a free sequence of the model. Errors: OutOfMemory when all are taken. The model must outlive the
  // session, or the session must move away before.
  static Result<std::unique_ptr<Session>> create(Model& model);
  Session(const Session&) = delete;
  // Another session with the same text. They share computed pages until one of them writes there. Errors:
  // as create().
  Result<std::unique_ptr<Session>> fork() const;

  enum class Wanted { None, Last, All };
  // Gets logits (one per token of the vocabulary, valid during the call) of tokens[index].
  using Sink = std::function<void(size_t index, std::span<const float> logits)>;

  // Computes tokens after those it holds, in batches. The logits' bits do not depend on how calls or
  // batches split them. Errors: Usage for an id outside the vocabulary (nothing is computed then);
  // Code::Failed "context full" (room() predicts it); OutOfMemory when no page of the cache is free
  // (RunOptions::cache_positions); device errors. After an error position() is the number of tokens kept.
  // `output`: given to the sink instead of logits. If rows attend to later ones, one call must give the
  // whole text, which must fit into one batch (ModelPlan::check_text).
  Status advance(const InputView& inputs, Wanted wanted, const Sink& sink, Output output = Output::Logits);

  // The k largest logits of the last token, found on the device, so that only a few numbers are
  // transferred, not the vocabulary's. 1 <= k <= max_top(). Errors: as advance(); Usage without tokens.
  Result<TopLogits> advance_top(const InputView& inputs, int k);
  int max_top() const { return model_->plan().max_top(); }  // 0: the device has no kernel for it
  // All logits of the last token of advance_top(), until the model computes again.
  Result<std::span<const float>> all_logits() { return model_->logits_of(0); }

  // One step for a text that begins with tokens(): its next `rows` tokens, 1 to batch(), and drafts after
  // the last one. `part`: gets their rows. Errors: as advance(); recover() may mend them.
  Result<StepOutput> step(TextState&, int rows, std::span<const int32_t> drafts, TextRows& part);
  // TextState::pick() of that step, if it has results. Then drops the rejected drafts.
  template <class Emit>
  TextState::Picked pick(TextState& text, const StepOutput& out, const TextRows& part, Emit emit) {
    const int held = position() - part.drafts;
    const auto picked = text.pick(*model_, out, 0, part, emit, [] { return true; });
    rewind(held + picked.right);
    return picked;
  }
  // Called by recover(), and by advance() when a device is lost: the session moves to the callback's model
  // and continues with the same next token. Empty: a lost device is an error.
  void on_device_lost(OnDeviceLost f) { on_device_lost_ = std::move(f); }
  // Done: a device was lost and the session has moved; try again. Else `failed`, or why it cannot move.
  Status recover(const Error& failed);

  int position() const { return int(tokens().size()); }  // tokens held
  int batch() const { return max_rows_; }                // tokens that advance() computes at once
  int room() const { return model_->context() - position(); }
  // Tokens to compute again before any others: those whose state the last rewind() could not keep.
  int missing() const { return position() - sequence_->computed(); }
  std::span<const int32_t> tokens() const { return sequence_->tokens(); }  // until the session changes
  const Inputs& inputs() const { return sequence_->inputs(); }             // likewise
  const Model& model() const { return *model_; }
  // Drops the tokens from `position` on. position <= position().
  void rewind(int position) {
    sequence_->truncate(position);
    if (stored_) stored_->truncate(position);
  }
  // Lets rewind() return to here at no cost, until the next mark: see Sequence::mark(). Does nothing if the
  // model was loaded without RunOptions::drafts.
  void mark() {
    if (model_->plan().options.drafts > 0) sequence_->mark();
  }

  // Sets the scales of the model's adapters for this text (Inputs::adapters()). Errors: as Sequence::adapt();
  // Usage for scales of other adapters.
  Status adapt(std::span<const float> scales) {
    if (auto ok = check_adapters(scales, model_->plan().adapters.size()); !ok) return ok;
    stored_ = std::nullopt;
    return sequence_->adapt(scales);
  }

  // ---- the prefix store; without use_store() these do nothing
  // Offers whole pages to this store from now on; nullptr: to none. It outlives the session.
  void use_store(PrefixStore* store) { store_ = store, stored_ = std::nullopt; }
  // Replaces the session's tokens by a longer stored prefix of `wanted`, if there is one by a page or more.
  // Leaves at least one token of `wanted` to compute. Returns the prefix's tokens; 0: nothing changed.
  // Errors: the device's.
  Result<int> take_stored(const InputView& wanted);
  // After an answer: stores the rest of its pages, and marks all of them as used.
  void finish_stored();
  std::string last_stored_page() const { return stored_ ? stored_->last_page() : ""; }  // of take_stored()
  // Rows of a step of `missing` ones, so that it ends where the state is stored.
  int rows_of_step(int missing);

  // Sets the watcher; nullptr: none. Without RunOptions::states it is never called. It must outlive the
  // session, or be replaced by the next call.
  void watch(StepWatcher* w) { watcher_ = w; }

  // Keeps only the common prefix with `wanted`, and leaves at least one token of `wanted` to compute.
  // Returns the number of tokens kept.
  int keep_common(const InputView& wanted);
  const Sequence& sequence() const { return *sequence_; }
  // See Model::restore(). The session must be empty.
  Status restore(const InputView& inputs, std::span<const uint32_t> first, const Model::Page& page) {
    return model_->restore(*sequence_, inputs, first, page);
  }

  // Continues on another model, with the same tokens and so the same next one: takes a free sequence there,
  // computes the tokens again, and frees its sequence here. The old model may be broken: a conversation
  // survives a lost device this way. Errors: Usage if `other` is a different model or has too
  // small a context; OutOfMemory if its sequences are taken; device errors. After an error the session is
  // unchanged.
  Status move_to(Model& other);

  // Rows of a prompt per step, at most the model's batch. For tests: the results do not depend on it.
  void limit_batch(int rows);

 private:
  Session(Model& model, std::unique_ptr<Sequence> sequence);
  Status catch_up();
  template <class Take>
  Status run(const InputView& inputs, Wanted wanted, Wants wants, Take take);
  // Computes `again` missing tokens, and new ones after them.
  Result<StepOutput> step(size_t again, const InputView& inputs, Wanted wanted, Wants wants);
  void begin_step();
  Result<StepOutput> compute();  // the rows of batch_
  StoredText& stored();          // with a store

  Model* model_;
  std::unique_ptr<Sequence> sequence_;
  Batch batch_;
  int max_rows_;  // of a batch
  int top_ = 0;   // number of largest logits for advance_top()
  StepWatcher* watcher_ = nullptr;
  PrefixStore* store_ = nullptr;
  std::optional<StoredText> stored_;
  OnDeviceLost on_device_lost_;
};

}  // namespace gimbal
