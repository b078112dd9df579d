// WebGPU as a Runtime, over Dawn or wgpu-native: the library is loaded
// on first use; nothing is linked.
#pragma once
#include <memory>
#include <string>

#include "gpu/runtime.h"

namespace gimbal::webgpu {

struct Api;

struct Options {
  bool split_fma = false;             // behave as a device whose fma() rounds twice
  uint64_t memory = 0;                // Facts::memory_total, which WebGPU does not report; 0: a guess
  std::string library = {};           // the library's file; empty: the installed names of Dawn
  void (*intercept)(Api&) = nullptr;  // for tests: replaces functions of the library
};

// 1 if open(0, ...) works; 0 if it returns a reason. WebGPU does not enumerate devices: it offers the one
// that it prefers.
int device_count();
// Unsupported, with the reason, if there is no library or no such device.
gpu::Failure open(int index, const Options&, std::unique_ptr<gpu::Runtime>* out);

}  // namespace gimbal::webgpu
