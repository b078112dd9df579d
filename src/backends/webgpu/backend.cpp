// WebGPU as a backend. Options: split_fma=1, memory=BYTES, library=FILE (runtime.h), and those of every GPU
// backend.
#include "backends/simt/device.h"
#include "backends/simt/modules.h"
#include "backends/webgpu/runtime.h"
#include "device/backend_impl.h"

namespace gimbal::webgpu {
namespace {

struct Backend {
  static constexpr const char* kName = "webgpu";
  static int count() { return device_count(); }
  static simt::Failure open(int index, simt::Options& options, simt::Opened* out) {
    Options o;
    if (auto f = options.take_flag("split_fma", &o.split_fma)) return f;
    if (auto f = options.take_number("memory", &o.memory)) return f;
    o.library = options.take("library").value_or("");
    if (auto f = options.unknown()) return f;  // before a library is loaded for nothing
    if (auto f = webgpu::open(index, o, &out->runtime)) return f;
    out->kernels = simt::wgsl_modules();
    return {};
  }
};

}  // namespace
}  // namespace gimbal::webgpu

GIMBAL_EXPORT_BACKEND(gimbal::simt::DeviceOf<gimbal::webgpu::Backend>)
