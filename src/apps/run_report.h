// What a run was like: for --stats and for --json.
#pragma once
#include <string>

#include "apps/json.h"
#include "apps/open_engine.h"
#include "runtime/generate.h"

namespace gimbal {

struct KernelCount {
  std::string op, kernel;
  int ops;
};
// The kernels of one bucket, in the order in which they first appear.
std::vector<KernelCount> count_kernels(const Device&, const Bucket&);

Json memory_json(const MemoryPlan&);
// Lines for stderr, each with its newline.
std::string run_stats(const LoadedModel&, const Generated&, uint64_t seed);
// tokens, text, finish, seed, context, timing, memory, kernels, device.
Json run_json(const LoadedModel&, const Generated&, const std::string& text, uint64_t seed);

}  // namespace gimbal
