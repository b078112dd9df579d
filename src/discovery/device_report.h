// The report of an open device.
#pragma once
#include "device/device.h"
#include "discovery/report.h"

namespace gimbal {

// `index`: of the device in its backend.
DeviceReport report_of(const Device&, int index);

}  // namespace gimbal
