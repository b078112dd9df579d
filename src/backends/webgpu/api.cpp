#include "backends/webgpu/api.h"

#include <dlfcn.h>

#include <utility>

#include "base/format.h"
#include "base/vendor_libraries.h"
#include "device/reason.h"

namespace gimbal::webgpu {
namespace {

constexpr VendorLibraryFiles kNames = driver_files("webgpu");
constexpr std::string_view kRemedy =
    "Install Dawn as libwebgpu_dawn.so, of an edition that has wgpuGetInstanceCapabilities (the npm package "
    "bun-webgpu-linux-x64 0.1.7 has one), or wgpu-native 27.0.2 to 29.0.1 as libwgpu_native.so; library= "
    "names a file elsewhere";

Failure unsupported(std::string text, const char* reason) {
  return {Failure::Unsupported, std::move(text), reason};
}

// Loads the functions of an opened library. After a failure *out is unusable.
Failure take(void* library, const std::string& name, Api* out) {
  const char* reason = "";
  std::string refusal = recognize(library, &out->edition, &reason);
  struct {
    const char* name;
    void** at;
  } const wanted[] = {
#define WEBGPU_FUNCTION(name, result, arguments) {#name, reinterpret_cast<void**>(&out->name)},
#include "backends/webgpu/functions.def"
#undef WEBGPU_FUNCTION
  };
  for (const auto& f : wanted)
    if (!(*f.at = dlsym(library, f.name)) && refusal.empty()) refusal = format("has no {}", f.name);
  *reinterpret_cast<void**>(&out->wgpuDevicePoll) = dlsym(library, "wgpuDevicePoll");
  return refusal.empty() ? Failure{} : unsupported(format("{} {}\n{}", name, refusal, kRemedy), reason);
}

}  // namespace

std::string_view Text::view() const {
  if (!data) return {};
  return length == SIZE_MAX ? std::string_view(data) : std::string_view(data, length);
}

Failure Api::load(const std::string& library, Api* out) {
  std::string why;  // of the first that is not there
  Failure refused;  // the first that is there
  auto open = [&](const char* file) {
    void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle && why.empty()) {
      const char* error = dlerror();
      why = error ? error : file;
    }
    if (!handle) return false;
    Failure f = take(handle, file, out);
    dlclose(handle);  // RTLD_NODELETE keeps it
    if (f && !refused) refused = f;
    return !f;
  };
  if (!library.empty()) {
    if (open(library.c_str())) return {};
  } else {
    for (size_t i = 0; kNames[i]; i++)
      if (open(kNames[i])) return {};
  }
  if (refused) return refused;
  return unsupported(format("no WebGPU library can be opened: {}\n{}", why, kRemedy),
                     reason::kLibraryMissing);
}

Failure failure(uint32_t error, std::string_view message, std::string_view doing) {
  switch (error) {
    case kNoError: return {};
    case kOutOfMemory + 1: return {Failure::OutOfMemory, format("{}: out of memory: {}", doing, message)};
    case kValidation + 1: return {Failure::Invalid, format("{}: a validation error: {}", doing, message)};
    case kInternal + 1: return {Failure::Invalid, format("{}: an internal error: {}", doing, message)};
    default: return {Failure::Invalid, format("{}: error {}: {}", doing, error, message)};
  }
}

}  // namespace gimbal::webgpu
