// Apple's and other GPUs of Macs through Metal. This header is plain C++ and hides the Objective-C.
#pragma once
#include <memory>

#include "gpu/device.h"
#include "gpu/modules.h"
#include "gpu/runtime.h"

namespace gimbal::metal {

struct Options {
  bool staging = false;  // copy as on a discrete card even if memory is unified
};

int device_count();
// Opens device `index`; 0 is the system default. Errors: Unsupported, with the reason, if it does not exist
// or cannot run the kernels.
gpu::Failure open(int index, const Options&, std::unique_ptr<gpu::Runtime>* out);

// Metal as the Api of gpu::DeviceOf (gpu/device.h): for the backend itself, and for the tests, which put a
// pretended Metal under it. Options: staging=1, and those of all GPU backends.
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
