// One conversation: the tokens computed so far, and the KV pages that remember them. It can go on on another
// model: other devices, the same tokens.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "runtime/model.h"

namespace gimbal {

class Session {
 public:
  // Takes a free sequence of the model. Errors: OutOfMemory when all are taken. The model must outlive the
  // session, or the session must move away before.
  static Result<std::unique_ptr<Session>> create(Model& model);
  ~Session();
  Session(const Session&) = delete;

  enum class Wanted { None, Last, All };
  // Gets logits (one per token of the vocabulary, valid during the call) of tokens[index].
  using Sink = std::function<void(size_t index, std::span<const float> logits)>;

  // Computes tokens after those already there, in batches. The logits' bits do not depend on how calls or
  // batches split them. Errors: Usage for an id outside the vocabulary (nothing is computed then);
  // Code::Failed "context full" as room() tells in advance; device errors. After an error position() says how
  // many tokens are kept.
  Status advance(std::span<const int32_t> tokens, Wanted wanted, const Sink& sink);

  // The k first logits of the last token, found on the device: a few numbers come from there, and not the
  // vocabulary's. 1 <= k <= most_leading(). Errors: as advance(); Usage when there are no tokens.
  Result<Leading> advance_leading(std::span<const int32_t> tokens, int k);
  int most_leading() const;  // 0: the device has no kernel for it
  // All logits of the last token of advance_leading(), while nothing else was computed on the model.
  Result<std::span<const float>> all_logits();

  int position() const { return int(tokens_.size()); }  // tokens held
  int batch() const { return batch_; }                  // tokens that advance() computes at once
  int room() const { return model_->context() - position(); }
  std::span<const int32_t> tokens() const { return tokens_; }  // those held; until the session changes
  const Model& model() const { return *model_; }
  // Forgets the tokens from `position` on. position <= position().
  void rewind(int position);

  // Goes on on another model, with the same tokens and so the same next one: takes a free sequence there,
  // computes the tokens anew, and gives back what it held here. The model it leaves need not work any more:
  // this is how a conversation survives a lost device. Errors: Usage when `other` is another model or has too
  // small a context; OutOfMemory when its sequences are taken; device errors. After an error the session is
  // where it was.
  Status move_to(Model& other);

  // How prompts are cut, at most the model's batch. For tests: the results do not depend on it.
  void limit_batch(int rows);

 private:
  Session(Model& model, int sequence);
  void leave();
  Status step(std::span<const int32_t> tokens, std::span<const int32_t> out_rows);
  void write_step(const Bucket& bucket, std::span<const int32_t> tokens, std::span<const int32_t> out_rows);
  Status take_leading(gimbal_step step);
  Status read_output(uint64_t offset, size_t values);
  Status run_part(size_t part, size_t which, gimbal_step step);

  Model* model_;
  int sequence_;
  int batch_;
  std::vector<int32_t> tokens_;  // computed so far
  std::vector<int32_t> pages_;   // physical page of each 64 positions
  // By part: what is written to its step slot, laid out as there. The step's own data comes first, the same
  // for all; behind it what other parts hand over.
  std::vector<std::vector<std::byte>> staging_;
  int leading_ = -1;               // while advance_leading() runs: which of Part::leading
  std::vector<float> logits_;      // read back: logit_rows x vocabulary
  std::vector<int32_t> out_rows_;  // rows of the step that logits are wanted of
};

}  // namespace gimbal
