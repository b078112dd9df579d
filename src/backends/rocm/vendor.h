// AMD's driver: its names, and the choice of kernels for a device.
#pragma once
#include "gpu/driver_api/driver.h"

namespace gimbal::rocm {

extern const gpu::driver_api::Vendor vendor;

}  // namespace gimbal::rocm
