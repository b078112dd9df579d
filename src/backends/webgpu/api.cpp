#include "backends/webgpu/api.h"

#include <dlfcn.h>

#include <utility>

#include "base/format.h"
#include "device/reason.h"

namespace gimbal::webgpu {
namespace {

// Dawn first; wgpu-native so that it is told apart, and not "not found".
constexpr const char* kNames[] = {"libwebgpu_dawn.so", "libwebgpu.so", "libwgpu_native.so"};
constexpr std::string_view kRemedy =
    "Install Dawn as libwebgpu_dawn.so, of an edition that has wgpuGetInstanceCapabilities (the npm package "
    "bun-webgpu-linux-x64 0.1.7 has one), or name its file with library=";

Failure unsupported(std::string text, const char* reason) {
  return {Failure::Unsupported, std::move(text), reason};
}

// webgpu.h says nowhere which edition it is, and its structures changed from one to the next: what a library
// exports tells.
std::string refusal_of(void* library, const char** reason) {
  auto has = [&](const char* name) { return dlsym(library, name) != nullptr; };
  if (!has("wgpuCreateInstance")) return "is no WebGPU library: it has no wgpuCreateInstance";
  if (has("wgpuDevicePoll") || has("wgpuSetLogLevel"))
    return "is wgpu-native, with which this version of gimbal was never tried: it uses Dawn";
  if (has("wgpuGetInstanceFeatures"))
    return "is of a later edition of webgpu.h than gimbal knows (it has wgpuGetInstanceFeatures)";
  *reason = reason::kDriverTooOld;
  if (!has("wgpuGetInstanceCapabilities"))
    return "is of an earlier edition of webgpu.h than gimbal knows (it has no wgpuGetInstanceCapabilities)";
  return "";
}

}  // namespace

std::string_view Text::view() const {
  if (!data) return {};
  return length == SIZE_MAX ? std::string_view(data) : std::string_view(data, length);
}

Failure Api::load(const std::string& library, Api* out) {
  void* handle = nullptr;
  std::string name = library, why;
  auto open = [&](const char* file) {
    if (!(handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) && why.empty()) {
      const char* error = dlerror();
      why = error ? error : file;
    }
    return handle != nullptr;
  };
  if (!library.empty()) {
    open(library.c_str());
  } else {
    for (const char* n : kNames)
      if (open(name.assign(n).c_str())) break;
  }
  if (!handle)
    return unsupported(format("no WebGPU library can be opened: {}\n{}", why, kRemedy),
                       reason::kLibraryMissing);
  const char* reason = reason::kLibraryMissing;  // Dawn is: this is another one
  std::string refusal = refusal_of(handle, &reason);
  struct {
    const char* name;
    void** at;
  } const wanted[] = {
#define WEBGPU_FUNCTION(name, result, arguments) {#name, reinterpret_cast<void**>(&out->name)},
#include "backends/webgpu/functions.def"
#undef WEBGPU_FUNCTION
  };
  for (const auto& f : wanted)
    if (!(*f.at = dlsym(handle, f.name)) && refusal.empty()) refusal = format("has no {}", f.name);
  dlclose(handle);  // RTLD_NODELETE keeps it
  if (!refusal.empty()) return unsupported(format("{} {}\n{}", name, refusal, kRemedy), reason);
  return {};
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
