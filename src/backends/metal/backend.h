// Metal as the Api of gpu::DeviceOf (gpu/device.h): for the backend itself, and for the tests, which put a
// pretended Metal under it. Options: staging=1 (runtime.h), and those of all GPU backends.
#pragma once
#include "backends/metal/runtime.h"
#include "gpu/device.h"
#include "gpu/modules.h"

namespace gimbal::metal {

struct Api {
  static constexpr const char* kName = "metal";
  static int count() { return device_count(); }
  static gpu::Failure open(int index, gpu::Options& options, gpu::Opened* out) {
    Options o;
    if (auto f = options.take_flag("staging", &o.staging)) return f;
    if (auto f = metal::open(index, o, &out->runtime)) return f;
    out->kernels = gpu::msl_modules(), out->tensor_kernels = gpu::tensor_msl_modules();
    return {};
  }
};

}  // namespace gimbal::metal
