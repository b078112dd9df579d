#include "backends/rocm/vendor.h"

#include "base/format.h"
#include "base/vendor_libraries.h"
#include "gpu/modules.h"

namespace gimbal::rocm {
namespace {

using gpu::Failure;
using gpu::driver_api::Gpu;

std::string version_text(int v) { return format("{}.{}.{}", v / 10000000, v / 100000 % 100, v % 100000); }

Failure kernels_for(const Gpu& gpu, std::span<const gpu::KernelCode>* out) {
  *out = gpu::amdgcn_modules(gpu.architecture);
  if (!out->empty()) return {};
  const std::string what =
      gpu.architecture.empty() ? "a GPU whose architecture the driver does not name" : gpu.architecture;
  return {Failure::Unsupported, format("{} is {}, and this program has kernels for {}\nbuild gimbal with "
                                       "-DGIMBAL_AMD_ARCHITECTURES={}, or use the "
                                       "vulkan or opencl backend",
                                       gpu.name, what, GIMBAL_BUILT_ARCHITECTURES,
                                       gpu.architecture.empty() ? "gfx..." : gpu.architecture)};
}

constexpr VendorLibraryFiles kLibraries = driver_files("rocm"), kCompilers = compiler_files("rocm");

constexpr const char* kFunctions[] = {
#define FUNCTION(name, cuda, hip, ...) hip,
#define OPTIONAL(name, cuda, hip, ...) hip,
#define HIP_ONLY(name, hip, ...) hip,
#define CUDA_ONLY(...) "",
#include "gpu/driver_api/functions.def"
#undef FUNCTION
#undef OPTIONAL
#undef HIP_ONLY
#undef CUDA_ONLY
};
constexpr gpu::driver_api::KnownError kErrors[] = {
#define DRIVER_ERROR(number, cuda, hip, code, meaning) {number, hip, Failure::code, meaning},
#include "gpu/driver_api/errors.def"
#undef DRIVER_ERROR
};

}  // namespace

const gpu::driver_api::Vendor vendor = {
    gpu::driver_api::Api::Hip,
    kFunctions,
    kErrors,
    "HIP",
    "AMD",
    kLibraries.data(),
    "install ROCm's HIP runtime (Debian: the package libamdhip64-5), or use the vulkan backend, which needs "
    "Mesa only",
    "check whether /dev/kfd and /dev/dri exist and this user may open them (groups render and video); a "
    "container must be started with --device /dev/kfd --device /dev/dri",
    50000000,
    "install ROCm 5.0 or newer",
    16,  // hipDeviceAttributeIntegrated
    version_text,
    kernels_for,
    [](const Gpu&) { return std::span<const gpu::KernelCode>(); },
    [](const Gpu& gpu) { return gpu::tensor_amdgcn_modules(gpu.architecture); },
    gpu::text_amd_modules,
    {kCompilers.data(), "hiprtc", "Code",
     "install ROCm's hipRTC (Debian: the packages libamdhip64-5 and libhiprtc-builtins5), or name its file "
     "with the device option "
     "compiler=FILE"},
    [](const Gpu& gpu) {
      return std::vector<std::string>{"--offload-arch=" + gpu.architecture, "-ffp-contract=off",
                                      "-std=c++20"};
    },
};

}  // namespace gimbal::rocm
