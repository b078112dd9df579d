// The maps of tensors with Vulkan: the bits of the CPU, also with an FMA in parts.
#define TESTED_BACKEND "vulkan"
#include "backends/vulkan/api.h"
#include "backends/vulkan/runtime.h"
#include "gpu/device_main.h"
#include "gpu/maps_checks.h"

namespace gimbal::gpu {

std::span<const KernelCode> tensor_spirv_modules();

namespace {

TEST(VulkanMaps, HaveTheBitsOfTheCpu) {
  for (bool split_fma : {false, true}) {
    vulkan::Options options;
    options.split_fma = split_fma;
    std::unique_ptr<Runtime> runtime;
    const Failure f = vulkan::open(0, options, &runtime);
    ASSERT_FALSE(f) << f.text;
    check_maps(*runtime, tensor_spirv_modules());
  }
}

}  // namespace
}  // namespace gimbal::gpu
