#include "backends/cuda/vendor.h"

#include <algorithm>

#include "base/format.h"
#include "base/vendor_libraries.h"
#include "gpu/modules.h"
#include "gpu/unpack.h"

namespace gimbal::cuda {
namespace {

using gpu::Failure;
using gpu::driver_api::Gpu;

std::string version_text(int v) { return format("{}.{}", v / 1000, v % 1000 / 10); }

// Machine code for the very architecture where the build made it; else PTX, which the driver compiles.
Failure kernels_for(const Gpu& gpu, std::span<const gpu::KernelCode>* out) {
  *out = machine_code_for(gpu.major, gpu.minor);
  if (!out->empty()) return {};
  *out = gpu::ptx_modules();
  if (out->empty()) return {Failure::Unsupported, "this program has no kernels for CUDA"};
  gpu::Unpacker unpacker;
  gpu::KernelCode first;
  if (Failure f = unpacker.unpack(out->front(), &first)) return f;
  const int least = min_capability({reinterpret_cast<const char*>(first.code.data()), first.code.size()});
  if (gpu.major * 10 + gpu.minor >= least) return {};
  return {Failure::Unsupported, format("{} has compute capability {}.{}, and the kernels need {}.{} or "
                                       "newer\nuse the vulkan or opencl backend, "
                                       "which older devices can run",
                                       gpu.name, gpu.major, gpu.minor, least / 10, least % 10)};
}

// Ampere and newer: mma with bytes.
std::span<const gpu::KernelCode> matrix_kernels_for(const Gpu& gpu) {
  if (gpu.major < 8) return {};
  return gpu::matrix_ptx_modules();
}

constexpr VendorLibraryFiles kLibraries = driver_files("cuda"), kCompilers = compiler_files("cuda");

constexpr const char* kFunctions[] = {
#define FUNCTION(name, cuda, hip, ...) cuda,
#define OPTIONAL(name, cuda, hip, ...) cuda,
#define CUDA_ONLY(name, cuda, ...) cuda,
#define HIP_ONLY(...) "",
#include "gpu/driver_api/functions.def"
#undef FUNCTION
#undef OPTIONAL
#undef CUDA_ONLY
#undef HIP_ONLY
};
constexpr gpu::driver_api::KnownError kErrors[] = {
#define DRIVER_ERROR(number, cuda, hip, code, meaning) {number, cuda, Failure::code, meaning},
#include "gpu/driver_api/errors.def"
#undef DRIVER_ERROR
};

}  // namespace

int min_capability(std::string_view ptx) {
  constexpr std::string_view kTarget = ".target sm_";
  const size_t at = ptx.find(kTarget);
  int n = 0;
  for (size_t i = at + kTarget.size(); at != ptx.npos && i < ptx.size() && ptx[i] >= '0' && ptx[i] <= '9';
       i++)
    n = n * 10 + (ptx[i] - '0');
  return n;
}

const gpu::driver_api::Vendor vendor = {
    gpu::driver_api::Api::Cuda,
    kFunctions,
    kErrors,
    "CUDA",
    "NVIDIA",
    kLibraries.data(),
    "install NVIDIA's driver for this GPU (Debian: the package nvidia-driver); in a container, start it with "
    "the GPUs: --gpus all",
    "check whether `nvidia-smi` lists a GPU; CUDA_VISIBLE_DEVICES may hide it, and a container must be "
    "started with --gpus all",
    11000,  // PTX 7.0
    "install a driver of NVIDIA's version 450 or newer",
    18,  // CU_DEVICE_ATTRIBUTE_INTEGRATED
    version_text,
    kernels_for,
    matrix_kernels_for,
    [](const Gpu&) { return gpu::tensor_ptx_modules(); },
    gpu::text_nvidia_modules,
    {kCompilers.data(), "nvrtc", "PTX",
     "install NVIDIA's NVRTC (PyPI: nvidia-cuda-nvrtc-cu12), or name its file with the device option "
     "compiler=FILE"},
    [](const Gpu& gpu) {
      return std::vector<std::string>{format("--gpu-architecture=compute_{}{}", gpu.major, gpu.minor),
                                      "--fmad=false", "--std=c++17"};
    },
};

}  // namespace gimbal::cuda
