// The maps of tensors with WebGPU: the bits of the CPU, also with an FMA in parts.
#define TESTED_BACKEND "webgpu"
#include "backends/webgpu/runtime.h"
#include "gpu/device_main.h"
#include "gpu/maps_checks.h"

namespace gimbal::gpu {

std::span<const KernelCode> tensor_wgsl_modules();

namespace {

TEST(WebGpuMaps, HaveTheBitsOfTheCpu) {
  for (bool split_fma : {false, true}) {
    webgpu::Options options;
    options.library = test::from_environment("GIMBAL_TEST_LIBRARY");
    options.split_fma = split_fma;
    std::unique_ptr<Runtime> runtime;
    const Failure f = webgpu::open(0, options, &runtime);
    ASSERT_FALSE(f) << f.text;
    check_maps(*runtime, tensor_wgsl_modules());
  }
}

}  // namespace
}  // namespace gimbal::gpu
