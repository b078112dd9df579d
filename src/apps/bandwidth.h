// How fast this machine reads its memory: what the speed of generation is compared with.
#pragma once
#include <cstdint>

#include "base/result.h"

namespace gimbal {

struct Bandwidth {
  double bytes_per_second = 0;  // the best pass
  uint64_t buffer = 0;
  int threads = 0, passes = 0;
};

// Every thread adds up its part of a buffer that no cache holds. Errors: OutOfMemory.
Result<Bandwidth> measure_read_bandwidth(int threads, uint64_t buffer_bytes);

}  // namespace gimbal
