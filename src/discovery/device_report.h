// The report of a device that is open.
#pragma once
#include "device/device.h"
#include "discovery/report.h"

namespace gimbal {

// What it says of itself. `index`: among the devices of its backend.
DeviceReport report_of(const Device&, int index);

}  // namespace gimbal
