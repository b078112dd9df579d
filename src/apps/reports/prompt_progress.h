// Progress of a long prompt: a bar on a terminal, and Ctrl-C between batches.
#pragma once
#include <optional>

#include "apps/toolkit/interrupt.h"
#include "apps/toolkit/terminal.h"

namespace gimbal {

// Callable as GenerateSettings::on_prompt. The bar appears after a second. It is removed when the prompt is
// computed or the object is destroyed, so later output starts on its own line.
class PromptProgress {
 public:
  explicit PromptProgress(bool wanted) { bar_.emplace("reading the prompt", wanted, Progress::Unit::Tokens); }
  // False if Ctrl-C was pressed.
  bool operator()(size_t done, size_t total) {
    if (bar_) bar_->update(done, total);
    if (done == total) bar_.reset();
    return !InterruptGuard::interrupted();
  }

 private:
  std::optional<Progress> bar_;
};

}  // namespace gimbal
