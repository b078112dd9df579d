// Apple's and other GPUs of Macs through Metal. This header is plain C++ and hides the Objective-C.
#pragma once
#include <memory>

#include "gpu/runtime.h"

namespace gimbal::metal {

struct Options {
  bool staging = false;  // copy as on a discrete card even if memory is unified
};

int device_count();
// Opens device `index`; 0 is the system default. Errors: Unsupported, with the reason, if it does not exist
// or cannot run the kernels.
gpu::Failure open(int index, const Options&, std::unique_ptr<gpu::Runtime>* out);

}  // namespace gimbal::metal
