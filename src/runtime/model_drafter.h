// Drafters that stand beside a model: another, smaller model, and the text itself.
#pragma once
#include "runtime/drafter.h"
#include "runtime/session.h"

namespace gimbal {

class ModelDrafter final : public Drafter {
 public:
  // `session` is empty, of a model loaded with RunOptions::drafts of 1 or more, so that its state
  // can be restored after a wrong guess. `name`: for people. A lost device:
  // Session::on_device_lost().
  ModelDrafter(std::unique_ptr<Session> session, std::string name)
      : session_(std::move(session)), name_(std::move(name)) {}

  Status read(std::span<const int32_t> text) override;
  // Empty if this model lacks a token of the text, or if the text exceeds its context.
  Result<std::vector<int32_t>> propose(std::span<const int32_t> text, int n) override;
  std::string name() const override { return name_; }

 private:
  bool knows(std::span<const int32_t> text) const;
  // Computes the tokens that the session lacks; returns the most likely next token.
  Result<int32_t> next(std::span<const int32_t> tokens);

  std::unique_ptr<Session> session_;
  const std::string name_;
};

// Drafts from the text itself: finds an earlier occurrence of its last tokens and proposes the tokens that
// followed there. Good for edited code, summaries, quotations and lists.
class NgramDrafter final : public Drafter {
 public:
  // Uses the longest match of at least kLeast tokens; of equal ones the latest. A match
  // that reaches the end of the text continues with its own guess, so a repetition
  // continues.
  Result<std::vector<int32_t>> propose(std::span<const int32_t> text, int n) override;
  std::string name() const override { return "ngram"; }

  static constexpr size_t kLeast = 2, kLongest = 16;  // tokens that are compared
};

}  // namespace gimbal
