#include "backends/webgpu/edition.h"

#include <dlfcn.h>

#include "base/format.h"
#include "device/reason.h"

namespace gimbal::webgpu {
namespace {

// wgpu-native's versions, a byte for each of the four numbers. Earlier ones leave a binding that a kernel
// does not use out of its layout. Tests run the first and the last.
constexpr uint32_t kFirstNative = 27u << 24 | 2 << 8, kLastNative = 29u << 24 | 1 << 8 | 255;

std::string dotted(uint32_t v) {
  return format("{}.{}.{}.{}", v >> 24, v >> 16 & 255, v >> 8 & 255, v & 255);
}

}  // namespace

std::string recognize(void* library, Edition* out, const char** reason) {
  auto has = [&](const char* name) { return dlsym(library, name) != nullptr; };
  *reason = reason::kLibraryMissing;  // Dawn or wgpu-native is: this is another one
  if (!has("wgpuCreateInstance")) return "is not a WebGPU library: it lacks wgpuCreateInstance";
  if (has("wgpuDevicePoll")) {
    const auto version = reinterpret_cast<uint32_t (*)()>(dlsym(library, "wgpuGetVersion"));
    const uint32_t v = version ? version() : 0;
    if (!v) return "is wgpu-native, and does not report its version";
    *out = wgpu_native(dotted(v));
    if (v < kFirstNative) *reason = reason::kDriverTooOld;
    if (v < kFirstNative || v > kLastNative)
      return format("is wgpu-native {}: gimbal knows the interface of {} to 29.0.1", dotted(v),
                    dotted(kFirstNative));
    return "";
  }
  if (has("wgpuGetInstanceFeatures"))
    return "is of a later edition of webgpu.h than gimbal knows (it has wgpuGetInstanceFeatures)";
  *reason = reason::kDriverTooOld;
  if (!has("wgpuGetInstanceCapabilities"))
    return "is of an earlier edition of webgpu.h than gimbal knows (it has no wgpuGetInstanceCapabilities)";
  return "";
}

}  // namespace gimbal::webgpu
