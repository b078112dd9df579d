// AMD GPUs as a backend. Options: library=PATH, graphs=0 (gpu/driver_api/runtime.h), max_binding=BYTES,
// part=BYTES.
#include "backends/rocm/vendor.h"
#include "device/backend_impl.h"
#include "gpu/driver_api/runtime.h"

namespace gimbal::rocm {
namespace {

struct Api {
  static constexpr const char* kName = "rocm";
  static int count() { return gpu::driver_api::device_count(vendor); }
  static gpu::Failure open(int index, gpu::Options& options, gpu::Opened* out) {
    return gpu::driver_api::open(vendor, index, options, out);
  }
  static const char* depends_on() {
    return "HIP_*\nROCR_*\nHSA_*\nGPU_*\nAMD_*\nROCM_*\nCUDA_VISIBLE_DEVICES\n/dev/kfd\n/dev/dri/*\n/dev/"
           "dxg\n";
  }
};

}  // namespace
}  // namespace gimbal::rocm

GIMBAL_EXPORT_BACKEND(gimbal::gpu::DeviceOf<gimbal::rocm::Api>)
