// AMD's driver as a runtime, over a fake of it: no GPU is needed, and none is used.
#include "backends/rocm/vendor.h"
#include "gpu/modules.h"

namespace gimbal::gpu {
std::span<const KernelCode> example_amdgcn_modules(std::string_view);
std::span<const KernelCode> rounding_amdgcn_modules(std::string_view);

struct Subject {
  static const driver_api::Vendor& vendor() { return rocm::vendor; }
  static std::span<const KernelCode> examples() { return example_amdgcn_modules("gfx90a"); }
  static std::span<const KernelCode> rounding() { return rounding_amdgcn_modules("gfx90a"); }
  static const char* symbol(const char*, const char* hip) { return hip; }
  static constexpr int kModules = 1;  // of the examples
};
}  // namespace gimbal::gpu

#include "backends/driver_api/runtime_tests.h"
