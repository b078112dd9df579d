// The Metal backend everywhere else: there, and with no device, so that every combination of backends builds
// on every system. CMakeLists.txt chooses between this file and backend.cpp.
#include "base/format.h"
#include "device/backend_impl.h"
#include "device/reason.h"
#include "gpu/device.h"

namespace gimbal::metal {
namespace {

struct Api {
  static constexpr const char* kName = "metal";
  static int count() { return 0; }
  static const char* depends_on() { return ""; }
  static gpu::Failure open(int, gpu::Options&, gpu::Opened*) {
    return {gpu::Failure::Unsupported,
            format("Metal is part of macOS and iOS: this is {}\nuse another backend here", GIMBAL_SYSTEM),
            reason::kLibraryMissing};
  }
};

}  // namespace
}  // namespace gimbal::metal

GIMBAL_EXPORT_BACKEND(gimbal::gpu::DeviceOf<gimbal::metal::Api>)
