// The emulator: a GPU made of fibers, so that the kernels of every GPU run in tests without one. The same
// texts as for the others, as C++; groups one after the other; the lanes of a group one after the other from
// barrier to barrier.
#pragma once
#include <cstdint>
#include <memory>

#include "gpu/runtime.h"

namespace gimbal::emulator {

struct Options {
  bool bounds = false;       // every word that a kernel touches must lie inside its array
  bool racecheck = false;    // no two unordered lanes touch a word when one of them writes; brings `bounds`
  uint64_t seed = 0;         // not 0: lanes and groups run in an order drawn from it
  uint64_t subgroup = 1;     // lanes of a sub-group: 4, 8, 16, 32 or 64; 1: there are none
  uint64_t memory = 0;       // bytes that can be allocated; 0: what the machine has
  uint64_t max_binding = 0;  // Facts::max_binding_bytes; 0: 128 MiB, as small as any GPU has
};

// A defect that a check finds is the Failure (Invalid) of replay(), and of each one after it.
std::unique_ptr<simt::Runtime> open(const Options&);

}  // namespace gimbal::emulator
