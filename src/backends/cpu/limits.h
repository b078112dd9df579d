// How fast a pool of threads can be at best here: reading memory, and computing with what the device may use.
#pragma once
#include <cstdint>

#include "backends/cpu/thread_pool.h"
#include "device/abi.h"

namespace gimbal::cpu {

// With the best instruction set that needs no more than `features`. Throws std::bad_alloc.
void measure_limits(uint32_t features, ThreadPool& pool, uint64_t bytes, gimbal_limits& out);

}  // namespace gimbal::cpu
