// The maps of tensors on every OpenCL device of this machine: the bits of the CPU.
#define TESTED_BACKEND "opencl"
#include "backends/opencl/runtime.h"
#include "gpu/device_main.h"
#include "gpu/maps_checks.h"

namespace gimbal::gpu {
std::span<const KernelCode> tensor_opencl_modules();
}  // namespace gimbal::gpu

namespace gimbal::opencl {
namespace {

TEST(OpenclMaps, HaveTheBitsOfTheCpu) {
  Api api;
  gpu::Failure f = Api::load(kLibrary, &api);
  ASSERT_FALSE(f) << f.text;
  std::vector<Found> found;
  ASSERT_FALSE(find_devices(api, &found));
  for (size_t i = 0; i < found.size(); i++) {
    std::unique_ptr<Opencl> runtime;
    f = open(api, int(i), {}, &runtime);
    ASSERT_FALSE(f) << f.text;
    gpu::check_maps(*runtime, gpu::tensor_opencl_modules());
  }
}

}  // namespace
}  // namespace gimbal::opencl
