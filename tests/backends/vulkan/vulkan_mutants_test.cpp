// On a Vulkan device, too, a kernel text with a wrong index does not pass (mutants/few.txt).
#define TESTED_BACKEND "vulkan"
#include "backends/vulkan/runtime.h"
#include "gpu/device_main.h"
#include "gpu/mutants_checks.h"

namespace gimbal::gpu {
std::span<const KernelCode> mutant_spirv_modules();
}

namespace gimbal::test {
namespace {

constexpr Mutant kMutants[] = {
#define MUTANT(name, kernel, row, change) {name, kernel, row, change},
#include "mutants.inc"
#undef MUTANT
};

struct Vulkan {
  static std::span<const gpu::KernelCode> mutants() { return gpu::mutant_spirv_modules(); }
  static std::span<const gpu::KernelCode> kernels() { return {}; }
  static gpu::Failure open(gpu::Options&, std::unique_ptr<gpu::Runtime>* out) {
    return vulkan::open(0, {}, out);
  }
};

TEST(VulkanMutants, AreAllFoundAndTheUnchangedTextsPass) { check_mutants<Vulkan>(kMutants, 3, 3); }

}  // namespace
}  // namespace gimbal::test
