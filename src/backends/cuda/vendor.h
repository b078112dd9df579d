// NVIDIA's driver: its names, and which of the kernels built here are for a device.
#pragma once
#include "gpu/driver_api/driver.h"

namespace gimbal::cuda {

extern const simt::driver_api::Vendor vendor;

// The least compute capability that a PTX text is for, times ten: 80 for ".target sm_80"; 0 when it does not
// say.
int min_capability(std::string_view ptx);

}  // namespace gimbal::cuda
