// NVIDIA's driver as a runtime, over a fake of it: no GPU is needed, and none is used.
#include "backends/cuda/vendor.h"
#include "gpu/modules.h"

namespace gimbal::gpu {
std::span<const KernelCode> example_ptx_modules();
std::span<const KernelCode> rounding_ptx_modules();

struct Subject {
  static const driver_api::Vendor& vendor() { return cuda::vendor; }
  static std::span<const KernelCode> examples() { return example_ptx_modules(); }
  static std::span<const KernelCode> rounding() { return rounding_ptx_modules(); }
  static const char* symbol(const char* cuda, const char*) { return cuda; }
  static constexpr int kModules = 5;  // of the examples
};
}  // namespace gimbal::gpu

#include "backends/driver_api/runtime_tests.h"
