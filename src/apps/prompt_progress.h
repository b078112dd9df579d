// A prompt that takes long: a bar on a terminal, and Ctrl-C between two of its batches.
#pragma once
#include <optional>

#include "apps/shared/interrupt.h"
#include "apps/shared/terminal.h"

namespace gimbal {

// GenerateSettings::on_prompt is a call of it. The bar appears after a second and goes when the prompt is
// computed or the object dies, so that what is printed next has a line of its own.
class PromptProgress {
 public:
  explicit PromptProgress(bool wanted) { bar_.emplace("reading the prompt", wanted, Progress::Unit::Tokens); }
  // False when Ctrl-C was pressed.
  bool operator()(size_t done, size_t total) {
    if (bar_) bar_->update(done, total);
    if (done == total) bar_.reset();
    return !InterruptGuard::interrupted();
  }

 private:
  std::optional<Progress> bar_;
};

}  // namespace gimbal
