// NVIDIA GPUs as a backend. Options: library=PATH, graphs=0, matrix=0 (gpu/driver_api/runtime.h),
// max_binding=BYTES, part=BYTES.
#include "backends/cuda/vendor.h"
#include "device/backend_impl.h"
#include "gpu/driver_api/runtime.h"

namespace gimbal::cuda {
namespace {

struct Api {
  static constexpr const char* kName = "cuda";
  static int count() { return gpu::driver_api::device_count(vendor); }
  static gpu::Failure open(int index, gpu::Options& options, gpu::Opened* out) {
    return gpu::driver_api::open(vendor, index, options, out);
  }
  static const char* depends_on() { return "CUDA_*\nNVIDIA_*\n/dev/nvidia*\n/dev/dxg\n"; }
};

}  // namespace
}  // namespace gimbal::cuda

GIMBAL_EXPORT_BACKEND(gimbal::gpu::DeviceOf<gimbal::cuda::Api>)
