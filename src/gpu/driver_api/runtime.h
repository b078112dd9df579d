// A device of NVIDIA's or AMD's driver as a Runtime: memory, modules, streams, and recordings, which are
// graphs of the driver where it has them.
#pragma once
#include <memory>

#include "gpu/device.h"
#include "gpu/driver_api/driver.h"
#include "gpu/options.h"

namespace gimbal::simt::driver_api {

// 0 when the driver cannot be used; open() then says why.
int device_count(const Vendor&);

// Device `index` of the vendor's driver. Takes the options library=PATH (of the driver's library, in place of
// its usual names) and graphs=0 (launch by launch instead of graphs). Failures of opening have the remedy
// behind a line break.
Failure open_runtime(const Vendor&, int index, Options&, Gpu* gpu, std::unique_ptr<Runtime>* out);
// The same, with the kernels for it.
Failure open(const Vendor&, int index, Options&, Opened* out);

}  // namespace gimbal::simt::driver_api
