// Which WebGPU library was opened, and where those that gimbal knows differ in use. What they are given has
// one layout in all of them (compared with the headers of wgpu-native 24.0.0.2, 29.0.0.0 and 29.0.1.1;
// docs/backends.md).
#pragma once
#include <cstdint>
#include <string>

namespace gimbal::webgpu {

constexpr uint32_t kValidation = 1, kOutOfMemory = 2, kInternal = 3;        // filters of error scopes
constexpr uint32_t kWaitAnyOnly = 1, kProcessEvents = 2, kSpontaneous = 3;  // when a callback may come

struct Edition {
  std::string name = "Dawn";  // for people
  bool tried = true;          // by us, with the real library: else it is used only where somebody says so
  // wgpuInstanceWaitAny waits for one answer. Else requests are answered before they return, and
  // wgpuDevicePoll waits for all that was submitted and brings what it has to tell.
  bool futures = true;
  uint32_t mode = kWaitAnyOnly;  // of callbacks
  uint32_t filters = kInternal;  // of error scopes: 1 to this one
};
// wgpu-native ends the process when it is asked to wait for a future, for a scope of internal errors, or for
// an instance that waits.
inline Edition wgpu_native(const std::string& version) {
  return {"wgpu-native " + version + " (never tried)", false, false, kProcessEvents, kOutOfMemory};
}

// webgpu.h says nowhere which edition it is: what a library exports tells, and wgpu-native its version.
// Returns why gimbal does not use this one, empty when it does; *reason: the code of that (device/reason.h).
std::string recognize(void* library, Edition* out, const char** reason);

}  // namespace gimbal::webgpu
