// The unevenly spaced levels of IQ4_NL and IQ4_XS.
#pragma once
#include "tensor/encode/lanes.h"

namespace gimbal::encoding {

inline constexpr int8_t kNonLinearLevels[16] = {
#include "tensor/quant/iq4_nl_levels.def"
};

struct NonLinear {
  static constexpr float first = kNonLinearLevels[0], last = kNonLinearLevels[15];
  // The nearest level; the upper one from the middle between two on.
  static Lanes level(Lanes v) {
    Lanes level = all(first);
    for (int k = 1; k < 16; k++) {
      const float middle = 0.5f * float(kNonLinearLevels[k - 1] + kNonLinearLevels[k]);
      const Lanes step = all(float(kNonLinearLevels[k] - kNonLinearLevels[k - 1]));
      level += Lanes(LaneInts(step) & LaneInts(v >= middle));
    }
    return level;
  }
};

// The code of a level.
static inline int nonlinear_code(int level) {
  int code = 0;
  for (int k = 1; k < 16; k++) code += level >= kNonLinearLevels[k];
  return code;
}

}  // namespace gimbal::encoding
