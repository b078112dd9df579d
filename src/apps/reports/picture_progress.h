// Progress of encoding pictures: a bar on a terminal, and Ctrl-C between the layers of the encoder.
#pragma once
#include "apps/toolkit/interrupt.h"
#include "apps/toolkit/terminal.h"

namespace gimbal {

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
