// The roofline of a thread pool on this machine: peak memory bandwidth and arithmetic throughput.
#pragma once
#include <cstdint>

#include "backends/cpu/thread_pool.h"
#include "device/abi.h"

namespace gimbal::cpu {

// Uses the best instruction set within `features`. Throws std::bad_alloc.
void measure_limits(uint32_t features, ThreadPool& pool, uint64_t bytes, gimbal_limits& out);

}  // namespace gimbal::cpu
