// AMD's driver: its names, and which of the kernels built here are for a device.
#pragma once
#include "gpu/driver_api/driver.h"

namespace gimbal::rocm {

extern const simt::driver_api::Vendor vendor;

}  // namespace gimbal::rocm
