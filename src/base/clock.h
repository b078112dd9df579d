// Time for measurements.
#pragma once
#include <chrono>

namespace gimbal {

// Seconds since some moment, which stays the same while the process runs; they never go back.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace gimbal
