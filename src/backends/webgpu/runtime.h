// WebGPU as a Runtime, over Dawn or wgpu-native: the library is opened when it is first asked for; nothing is
// linked.
#pragma once
#include <memory>
#include <string>

#include "gpu/runtime.h"

namespace gimbal::webgpu {

struct Api;

struct Options {
  bool split_fma = false;             // as on a device whose fma() is two operations
  uint64_t memory = 0;                // Facts::memory_total, which WebGPU does not tell; 0: a guess
  std::string library = {};           // the library's file; empty: the names under which Dawn is installed
  void (*intercept)(Api&) = nullptr;  // for tests: puts functions of its own in place of the library's
};

// 1 where open(0, ...) works; 0 where it says why not. WebGPU lists no devices: it gives the one that it
// thinks best.
int device_count();
// Unsupported, with the reason, when there is no library or no such device.
simt::Failure open(int index, const Options&, std::unique_ptr<simt::Runtime>* out);

}  // namespace gimbal::webgpu
