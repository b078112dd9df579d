// One generated Metal kernel, compiled as C++ through the stand-in metal_stdlib, as the emulator's
// GroupRunner runs it.
#pragma once
#include "gpu/dialect/emulator_lane.h"

namespace gimbal::test {

struct ShimmedKernel {
  const char* name;
  emulator::Compiled code;
  uint32_t lanes;                         // that the text asks for
  uint32_t buffers;                       // bit i: buffer(i) is an argument
  uint32_t param_bytes;                   // of the struct behind buffer(9)
  char *group_memory, *group_memory_end;  // static memory that stands for the group's
};

struct CompiledText {
  const char* text;
  uint64_t bytes;
  const ShimmedKernel* kernel;
};

// The lane that runs, for barriers.
extern constinit thread_local emulator::Lane* running_lane;

// An argument of any type that lies at an address.
struct Bound {
  const void* at;
  template <class T>
  operator T&() const {
    return *static_cast<T*>(const_cast<void*>(at));
  }
};

}  // namespace gimbal::test
