// Progress of long prompts and of pictures: a bar on a terminal, and Ctrl-C between batches or the layers of
// the encoder.
#pragma once
#include <optional>

#include "apps/toolkit/keyboard.h"
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

// Callable as PictureWatch. The bar appears after a second, and is removed with the object.
class PictureProgress {
 public:
  explicit PictureProgress(bool wanted) : bar_("reading the pictures", wanted, Progress::Unit::Tokens) {}
  // False if Ctrl-C was pressed under an InterruptGuard.
  bool operator()(size_t rows, size_t all) {
    bar_.update(rows, all);
    return !InterruptGuard::interrupted();
  }

 private:
  Progress bar_;
};

}  // namespace gimbal
