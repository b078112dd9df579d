// The limits of a device (roofline): the read speed of its memory and its arithmetic, measured by
// kernels/limit_*.k.
#pragma once
#include <functional>
#include <string_view>

#include "device/abi.h"
#include "gpu/runtime.h"

namespace gimbal::gpu {

// Loads a kernel by its name in kernels.def.
using KernelNamed = std::function<Failure(std::string_view name, Kernel** out)>;

// In bytes and operations per second; takes about half a second on a GPU and up to a few on a software
// device. Allocates up to 1 GiB, at most a quarter of the free memory, and releases it. `matrix_units`:
// whether the kernels of gpu/matrix are there.
Failure measure_limits(Runtime&, const KernelNamed&, bool matrix_units, gimbal_limits* out);

}  // namespace gimbal::gpu
