// hot: hundreds of megabytes of data pass through here.
#include "inspection/gpu_marks.h"

namespace gimbal {

// A fixed number of words, so that compilers make it a loop over vectors.
bool has_gpu_mark(const uint32_t* words) {
  uint32_t hit = 0;
  for (size_t i = 0; i < kMarkedWords; i++) {
    const uint32_t w = words[i];
    hit |= uint32_t(w == kFatbin) | uint32_t(w == kElf) | uint32_t(w == kSpirv) | uint32_t(w == kBundle) |
           uint32_t(w == kPackedBundle);
  }
  return hit != 0;
}

}  // namespace gimbal
