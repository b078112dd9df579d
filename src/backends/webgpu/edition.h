// Identifies the loaded WebGPU library, and lists the known differences in its use. The struct layouts are
// the same in all of them (compared with the headers of wgpu-native 27.0.4.0, 29.0.0.0 and 29.0.1.1;
// docs/backends.md).
#pragma once
#include <cstdint>
#include <string>

namespace gimbal::webgpu {

constexpr uint32_t kValidation = 1, kOutOfMemory = 2, kInternal = 3;        // filters of error scopes
constexpr uint32_t kWaitAnyOnly = 1, kProcessEvents = 2, kSpontaneous = 3;  // when a callback may run

struct Edition {
  std::string name = "Dawn";  // for display
  // wgpuInstanceWaitAny waits for one result. Otherwise requests complete before they return, and
  // wgpuDevicePoll waits for all submitted work and runs its callbacks.
  bool futures = true;
  uint32_t mode = kWaitAnyOnly;  // of callbacks
  uint32_t filters = kInternal;  // of error scopes: 1 to this one
};
// wgpu-native aborts when asked to wait for a future, to push a scope for internal errors, or to create an
// instance with timed waits.
inline Edition wgpu_native(const std::string& version) {
  return {"wgpu-native " + version, false, kProcessEvents, kOutOfMemory};
}

// webgpu.h does not identify the implementation; the library's exports do, and wgpu-native reports its
// version. Returns why gimbal does not use it, or ""; *reason: the identifier (device/reason.h).
std::string recognize(void* library, Edition* out, const char** reason);

}  // namespace gimbal::webgpu
