// What the engine asks of a WebGPU library, and what it counts.
#define TESTED_BACKEND "webgpu"
#include "backends/webgpu/runtime.h"
#include "gpu/device_main.h"
#include "gpu/modules.h"
#include "gpu/watched_runtime.h"

namespace gimbal::test {
namespace {

struct OnWebgpu {
  static gpu::Failure open(gpu::Options&, gpu::Opened* out) {
    if (auto f = webgpu::open(0, {}, &out->runtime)) return f;
    out->kernels = gpu::wgsl_modules();
    return {};
  }
};
using EngineCounts = CountsTest<OnWebgpu>;

}  // namespace
}  // namespace gimbal::test

#include "gpu/counts_checks.h"
#include "gpu/idle_checks.h"
