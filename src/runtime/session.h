// One conversation: the tokens computed so far, and the KV pages that remember them.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "runtime/model.h"

namespace gimbal {

class Session {
 public:
  // Takes a free sequence of the model. Errors: OutOfMemory when all are taken. The model must outlive the
  // session.
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

  int position() const { return position_; }  // tokens held
  int room() const { return model_.context() - position_; }
  // Forgets the tokens from `position` on. position <= position().
  void rewind(int position);
  // How prompts are cut, at most the model's batch. For tests: the results do not depend on it.
  void limit_batch(int rows);

 private:
  Session(Model& model, int sequence);
  Status step(std::span<const int32_t> tokens, std::span<const int32_t> out_rows);

  Model& model_;
  const int sequence_;
  int position_ = 0;
  int batch_;
  std::vector<int32_t> pages_;      // physical page of each 64 positions
  std::vector<std::byte> staging_;  // one step's data, as the program's step slot lays it out
  std::vector<float> logits_;       // read back: logit_rows x vocabulary
  std::vector<int32_t> out_rows_;   // rows of the step that logits are wanted of
};

}  // namespace gimbal
