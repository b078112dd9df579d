// The emulator's runtime with counters, for gpu/counts_checks.h.
#pragma once
#include "backends/emulator/runtime.h"
#include "gpu/modules.h"
#include "gpu/watched_runtime.h"

namespace gimbal::test {

struct WatchedEmulator {
  static gpu::Failure open(gpu::Options& options, gpu::Opened* out) {
    emulator::Options o;
    if (auto f = options.take_number("memory", &o.memory)) return f;
    *out = {emulator::open(o), gpu::emulator_modules()};
    return {};
  }
};
using EngineCounts = CountsTest<WatchedEmulator>;

}  // namespace gimbal::test
