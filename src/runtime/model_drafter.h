// Drafts from another, smaller model with the same vocabulary: its most likely tokens, one after the other.
#pragma once
#include "runtime/drafter.h"
#include "runtime/session.h"

namespace gimbal {

class ModelDrafter final : public Drafter {
 public:
  // `session` is empty; of a model that was loaded with RunOptions::drafts of 1 or more, so that what it
  // remembers of a text comes back after a guess that was wrong. `name`: for people. A lost device:
  // Session::on_device_lost().
  ModelDrafter(std::unique_ptr<Session> session, std::string name)
      : session_(std::move(session)), name_(std::move(name)) {}

  Status read(std::span<const int32_t> text) override;
  // Nothing where the text has a token that this model lacks, or is longer than its context.
  Result<std::vector<int32_t>> propose(std::span<const int32_t> text, int n) override;
  std::string name() const override { return name_; }

 private:
  bool knows(std::span<const int32_t> text) const;
  // Computes what follows `text`, of which the session has the beginning; gives the most likely next token.
  Result<int32_t> next(std::span<const int32_t> tokens);

  std::unique_ptr<Session> session_;
  const std::string name_;
};

}  // namespace gimbal
