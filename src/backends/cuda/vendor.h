// NVIDIA's driver: its names, and the choice of kernels for a device.
#pragma once
#include "gpu/driver_api/driver.h"

namespace gimbal::cuda {

extern const gpu::driver_api::Vendor vendor;

// The minimum compute capability of a PTX text, times ten: 80 for
// ".target sm_80"; 0 if not stated.
int min_capability(std::string_view ptx);

}  // namespace gimbal::cuda
