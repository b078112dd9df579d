// Apple's GPUs, and others in Macs, through Metal. Plain C++: the Objective-C is behind it.
#pragma once
#include <memory>

#include "gpu/runtime.h"

namespace gimbal::metal {

struct Options {
  bool staging = false;  // copies as on a card with memory of its own, also where memory is shared
};

int device_count();
// Device `index`, the system's default first. Errors: Unsupported, with the reason, for none or one that
// cannot run the kernels.
simt::Failure open(int index, const Options&, std::unique_ptr<simt::Runtime>* out);

}  // namespace gimbal::metal
