// A Runtime over NVIDIA's or AMD's driver: memory, modules, streams, and recordings, which are driver graphs
// where supported.
#pragma once
#include <memory>

#include "gpu/device.h"
#include "gpu/driver_api/driver.h"
#include "gpu/options.h"

namespace gimbal::gpu::driver_api {

// 0 if the driver is unusable; open() then returns the reason.
int device_count(const Vendor&);

// Opens device `index` of the vendor's driver. Options: library=PATH (the driver's library instead of its
// usual names), compiler=PATH (likewise, of the library that compiles kernel texts) and graphs=0 (single
// launches instead of graphs). Failures of opening include the remedy after
// a line break.
Failure open_runtime(const Vendor&, int index, Options&, Gpu* gpu, std::unique_ptr<Runtime>* out);
// The same, with its kernels.
Failure open(const Vendor&, int index, Options&, Opened* out);

}  // namespace gimbal::gpu::driver_api
