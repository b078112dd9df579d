// The GPU emulator: runs the kernels of all GPU backends in tests without a GPU. The same kernel texts,
// compiled as C++; groups run one after the other, and so do the lanes of a group, on fibers, from barrier to
// barrier.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "gpu/runtime.h"

namespace gimbal::emulator {

struct Options {
  bool bounds = false;       // check that each access is within its array
  bool racecheck = false;    // report unordered accesses to a word if one of them writes; implies `bounds`
  uint64_t seed = 0;         // not 0: seed of a random order of lanes and groups
  uint64_t subgroup = 1;     // lanes per sub-group: 4, 8, 16, 32 or 64; 1: no sub-groups
  uint64_t memory = 0;       // allocatable bytes; 0: the machine's memory
  std::string idle = {};     // a kernel that computes nothing, for tests of verification
  uint64_t max_binding = 0;  // Facts::max_binding_bytes; 0: 128 MiB, the smallest of any GPU
};

// A defect found by a check is the Failure (Invalid) of this and every later replay().
std::unique_ptr<gpu::Runtime> open(const Options&);

}  // namespace gimbal::emulator
