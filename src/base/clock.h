// Time for measurements.
#pragma once
#include <chrono>

namespace gimbal {

// Seconds since an arbitrary point in time, fixed for the process; never decreases.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace gimbal
