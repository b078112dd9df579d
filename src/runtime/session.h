// One conversation: a sequence of a model, computed in batches of its own. It can go on on another model:
// other devices, the same tokens.
#pragma once
#include <functional>
#include <span>

#include "runtime/model.h"

namespace gimbal {

// Sees what a session computes.
class StepWatcher {
 public:
  virtual ~StepWatcher() = default;
  // Behind each step: the session's text, the position of the step's first row, and f32[rows, width], the
  // states of its rows (Output::States), valid during the call.
  virtual void computed(std::span<const int32_t> text, int first, std::span<const float> states) = 0;
};

class Session {
 public:
  // Takes a free sequence of the model. Errors: OutOfMemory when all are taken. The model must outlive the
  // session, or the session must move away before.
  static Result<std::unique_ptr<Session>> create(Model& model);
  Session(const Session&) = delete;

  enum class Wanted { None, Last, All };
  // Gets logits (one per token of the vocabulary, valid during the call) of tokens[index].
  using Sink = std::function<void(size_t index, std::span<const float> logits)>;

  // Computes tokens after those already there, in batches. The logits' bits do not depend on how calls or
  // batches split them. Errors: Usage for an id outside the vocabulary (nothing is computed then);
  // Code::Failed "context full" as room() tells in advance; OutOfMemory when no page of the cache is free
  // (RunOptions::cache_positions); device errors. After an error position() says how many tokens are kept.
  // `output`: what the sink gets in place of logits. Where rows see later ones, all of a text must be given
  // in one call, and fit into one batch (ModelPlan::check_text).
  Status advance(std::span<const int32_t> tokens, Wanted wanted, const Sink& sink,
                 Output output = Output::Logits);

  // The k first logits of the last token, found on the device: a few numbers come from there, and not the
  // vocabulary's. 1 <= k <= max_top(). Errors: as advance(); Usage when there are no tokens.
  Result<TopLogits> advance_top(std::span<const int32_t> tokens, int k);
  // The same of the last token or of all of them, each with its index, and as what all_logits() knows it;
  // valid during the call.
  using TopSink = std::function<void(size_t index, const TopLogits&, size_t row)>;
  Status advance_top(std::span<const int32_t> tokens, int k, Wanted wanted, const TopSink& sink);
  int max_top() const { return model_->plan().max_top(); }  // 0: the device has no kernel for it
  // All logits of a token that advance_top() gave the first ones of, in its last step, while nothing else was
  // computed on the model.
  Result<std::span<const float>> all_logits(size_t row = 0) { return model_->logits_of(row); }

  int position() const { return int(tokens().size()); }  // tokens held
  int batch() const { return max_rows_; }                // tokens that advance() computes at once
  int room() const { return model_->context() - position(); }
  // Tokens that must be computed anew before others: what the model could not keep in the last rewind().
  int missing() const { return position() - sequence_->computed(); }
  // Tokens that the next step can compute with a result for each of them, beside those that are missing.
  int results_at_once() const;
  std::span<const int32_t> tokens() const { return sequence_->tokens(); }  // until the session changes
  const Model& model() const { return *model_; }
  // Forgets the tokens from `position` on. position <= position().
  void rewind(int position) { sequence_->truncate(position); }
  // Lets rewind() come back to here for nothing, until the next mark: see Sequence::mark(). Does nothing
  // where the model was loaded without RunOptions::drafts.
  void mark() {
    if (model_->plan().options.drafts > 0) sequence_->mark();
  }

  // From now on; nullptr: nobody. Of a model without states (RunOptions::states) it sees nothing. Outlives
  // the session, or the next call.
  void watch(StepWatcher* w) { watcher_ = w; }

  // Forgets what it holds beyond what it has in common with `wanted`, of which at least one token is left to
  // compute. Answers how many of them it holds.
  int keep_common(std::span<const int32_t> wanted);
  const Sequence& sequence() const { return *sequence_; }
  // See Model::restore(). The session must be empty.
  Status restore(std::span<const int32_t> tokens, std::span<const uint32_t> first, const Model::Page& page) {
    return model_->restore(*sequence_, tokens, first, page);
  }

  // Goes on on another model, with the same tokens and so the same next one: takes a free sequence there,
  // computes the tokens anew, and gives back what it held here. The model it leaves need not work any more:
  // this is how a conversation survives a lost device. Errors: Usage when `other` is another model or has too
  // small a context; OutOfMemory when its sequences are taken; device errors. After an error the session is
  // where it was.
  Status move_to(Model& other);

  // How prompts are cut, at most the model's batch. For tests: the results do not depend on it.
  void limit_batch(int rows);

 private:
  Session(Model& model, std::unique_ptr<Sequence> sequence);
  Status catch_up();
  template <class Take>
  Status run(std::span<const int32_t> tokens, Wanted wanted, Wants wants, Take take);
  // Computes `again` tokens that are missing, and behind them new ones.
  Result<StepOutput> step(size_t again, std::span<const int32_t> tokens, Wanted wanted, Wants wants);

  Model* model_;
  std::unique_ptr<Sequence> sequence_;
  Batch batch_;
  int max_rows_;  // of a batch
  StepWatcher* watcher_ = nullptr;
};

}  // namespace gimbal
