// Drafts from another, smaller model with the same vocabulary: its most likely tokens, one after the other.
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

}  // namespace gimbal
