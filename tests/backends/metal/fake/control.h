// The pretended Metal that tests link instead of Apple's, from the side of C++: what its device is like, what
// goes wrong next, and what has been done. It runs the kernels' own texts (shim/), when somebody waits, and
// in any order that the barriers allow.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "backends/metal/shim/kernel.h"

namespace gimbal::test {

struct PretendedMetal {
  // ---- the machine
  int devices = 1;
  bool unified = true;          // memory that CPU and GPU share
  bool knows_math_mode = true;  // macOS 15
  uint64_t memory = 1u << 30;   // recommended; more cannot be had either
  uint64_t piece = 256u << 20;  // the largest buffer
  uint64_t lanes = 1024, group_memory = 32768;
  uint64_t pipeline_lanes = 1024;
  uint64_t seed = 0;  // of the order of what may run side by side; 0: backwards

  // ---- what goes wrong
  int fail_at = -1;    // so many command buffers from now...
  long fail_code = 0;  // ...end with this MTLCommandBufferError, and later ones too unless it is 8
  bool no_queue = false, no_commands = false, no_buffers = false, no_pipelines = false, no_function = false;

  // ---- what was done
  uint64_t allocated = 0;
  int objects = 0;  // that exist
  int commands = 0, dispatches = 0, barriers = 0, copies = 0, compiled = 0;
  std::string complaint;  // the first use that Metal forbids
};
PretendedMetal& pretended_metal();

// Texts that it can compile from now on; others are refused, as texts with errors are.
void know_texts(std::span<const CompiledText>);

}  // namespace gimbal::test
