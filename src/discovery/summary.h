// Reports as text for users.
#pragma once
#include <string>
#include <vector>

#include "discovery/selection.h"

namespace gimbal {

// "=== Available Backends ===": a tick or cross for each, devices, reasons, remedies, and the recommended
// one.
std::string backend_summary(const std::vector<BackendReport>&, const Result<DeviceChoice>& best);

// "NVIDIA H200: 150.11 GB (149.50 GB free), compute capability 9.0, driver ..., PCI 0000:19:00.0".
std::string device_line(const DeviceReport&);

}  // namespace gimbal
