// What the engine asks of an OpenCL driver, and what it counts.
#define TESTED_BACKEND "opencl"
#include "backends/opencl/runtime.h"
#include "gpu/device_main.h"
#include "gpu/modules.h"
#include "gpu/watched_runtime.h"

namespace gimbal::test {
namespace {

struct OnOpencl {
  static gpu::Failure open(gpu::Options&, gpu::Opened* out) {
    opencl::Api api;
    if (auto f = opencl::Api::load(opencl::kLibrary, &api)) return f;
    std::unique_ptr<opencl::Opencl> runtime;
    if (auto f = opencl::open(api, 0, {}, &runtime)) return f;
    out->runtime = std::move(runtime), out->kernels = gpu::opencl_modules();
    return {};
  }
};
using EngineCounts = CountsTest<OnOpencl>;

}  // namespace
}  // namespace gimbal::test

#include "gpu/counts_checks.h"
#include "gpu/idle_checks.h"
