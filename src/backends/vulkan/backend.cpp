// Vulkan as a backend. Options: staging=1, split_fma=1, no_subgroups=1, validation=1, library=FILE,
// shaderc=FILE (runtime.h), and those of every GPU backend.
#include "backends/vulkan/runtime.h"
#include "device/backend_impl.h"
#include "gpu/depends.h"
#include "gpu/device.h"
#include "gpu/modules.h"

namespace gimbal::vulkan {
namespace {

struct Api {
  static constexpr const char* kName = "vulkan";
  static int count() { return device_count(); }
  static gpu::Failure open(int index, gpu::Options& options, gpu::Opened* out) {
    Options o;
    if (auto f = options.take_flag("staging", &o.staging)) return f;
    if (auto f = options.take_flag("split_fma", &o.split_fma)) return f;
    if (auto f = options.take_flag("no_subgroups", &o.no_subgroups)) return f;
    if (auto f = options.take_flag("validation", &o.validation)) return f;
    o.library = options.take("library").value_or("");
    o.shaderc = options.take("shaderc").value_or("");
    if (auto f = options.unknown()) return f;  // before a driver is loaded for nothing
    if (auto f = vulkan::open(index, o, &out->runtime)) return f;
    out->kernels = gpu::spirv_modules(), out->tensor_kernels = gpu::tensor_spirv_modules();
    out->text_kernels = gpu::text_glsl_modules();
    return {};
  }
  static const char* depends_on() {
    static const gpu::Depends all = gpu::vulkan_depends();
    return all.text();
  }
};

}  // namespace
}  // namespace gimbal::vulkan

GIMBAL_EXPORT_BACKEND(gimbal::gpu::DeviceOf<gimbal::vulkan::Api>)
