// WebGPU as a backend. Options: split_fma=1, memory=BYTES, library=FILE (runtime.h), and those of every GPU
// backend.
#include "backends/webgpu/runtime.h"
#include "device/backend_impl.h"
#include "gpu/depends.h"
#include "gpu/device.h"
#include "gpu/modules.h"

namespace gimbal::webgpu {
namespace {

struct Backend {
  static constexpr const char* kName = "webgpu";
  static int count() { return device_count(); }
  static gpu::Failure open(int index, gpu::Options& options, gpu::Opened* out) {
    Options o;
    if (auto f = options.take_flag("split_fma", &o.split_fma)) return f;
    if (auto f = options.take_number("memory", &o.memory)) return f;
    o.library = options.take("library").value_or("");
    if (auto f = options.unknown()) return f;  // before a library is loaded for nothing
    if (auto f = webgpu::open(index, o, &out->runtime)) return f;
    out->kernels = gpu::wgsl_modules(), out->tensor_kernels = gpu::tensor_wgsl_modules();
    out->text_kernels = gpu::text_wgsl_modules();
    return {};
  }
  // Its libraries reach devices through Vulkan or OpenGL.
  static const char* depends_on() {
    static const gpu::Depends all = [] {
      auto d = gpu::vulkan_depends();
      return d.also(
          "DAWN_*\nWGPU_*\nEGL_*\n__EGL_*\nDISPLAY\nWAYLAND_DISPLAY\n/etc/glvnd/egl_vendor.d/*\n"
          "/usr/share/glvnd/egl_vendor.d/*\n");
    }();
    return all.text();
  }
};

}  // namespace
}  // namespace gimbal::webgpu

GIMBAL_EXPORT_BACKEND(gimbal::gpu::DeviceOf<gimbal::webgpu::Backend>)
