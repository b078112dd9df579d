// The drafter for a draft head (model/draft_head.h), or for a file's own layers for multi-token prediction:
// it watches the target's steps, and guesses from the states that they compute.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "model/draft_head.h"
#include "runtime/drafter.h"
#include "runtime/head_rows.h"
#include "runtime/session.h"

namespace gimbal {

class HeadDrafter : public Drafter, public StepWatcher {
 public:
  StepWatcher* watcher() final { return this; }
  void computed(std::span<const int32_t> text, int first, std::span<const float> states) final {
    rows_.computed(text, first, states);
  }
  std::string name() const final { return name_; }

 protected:
  // `name`: for people.
  HeadDrafter(HeadRows rows, std::string name) : rows_(std::move(rows)), name_(std::move(name)) {}

  HeadRows rows_;

 private:
  const std::string name_;
};

// The options of the head's model that follow from the head.
void set_head_options(const DraftHead&, RunOptions&);

// `model`: made with ModelArch::nextn, or of the head with set_head_options(), and RunOptions::states;
// outlives the drafter, which takes a sequence of it. Errors: OutOfMemory if all sequences are taken.
Result<std::unique_ptr<Drafter>> make_head_drafter(Model& model, const DraftHead* head);

}  // namespace gimbal
