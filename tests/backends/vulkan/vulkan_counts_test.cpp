// What the engine asks of a Vulkan driver, and what it counts.
#define TESTED_BACKEND "vulkan"
#include "backends/vulkan/runtime.h"
#include "gpu/device_main.h"
#include "gpu/modules.h"
#include "gpu/watched_runtime.h"

namespace gimbal::test {
namespace {

struct OnVulkan {
  static gpu::Failure open(gpu::Options&, gpu::Opened* out) {
    if (auto f = vulkan::open(0, {}, &out->runtime)) return f;
    out->kernels = gpu::spirv_modules();
    return {};
  }
};
using EngineCounts = CountsTest<OnVulkan>;

}  // namespace
}  // namespace gimbal::test

#include "gpu/counts_checks.h"
#include "gpu/idle_checks.h"
