// On a WebGPU device, too, a kernel text with a wrong index does not pass (mutants/few.txt).
#define TESTED_BACKEND "webgpu"
#include "backends/webgpu/runtime.h"
#include "gpu/device_main.h"
#include "gpu/mutants_checks.h"

namespace gimbal::gpu {
std::span<const KernelCode> mutant_wgsl_modules();
}

namespace gimbal::test {
namespace {

constexpr Mutant kMutants[] = {
#define MUTANT(name, kernel, row, change) {name, kernel, row, change},
#include "mutants.inc"
#undef MUTANT
};

struct WebGpu {
  static std::span<const gpu::KernelCode> mutants() { return gpu::mutant_wgsl_modules(); }
  static std::span<const gpu::KernelCode> kernels() { return {}; }
  static gpu::Failure open(gpu::Options&, std::unique_ptr<gpu::Runtime>* out) {
    return webgpu::open(0, {}, out);
  }
};

TEST(WebGpuMutants, AreAllFoundAndTheUnchangedTextsPass) { check_mutants<WebGpu>(kMutants, 3, 3); }

}  // namespace
}  // namespace gimbal::test
