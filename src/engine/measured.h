// Finds the fastest of several kernel rows for a model's large products on this machine: times them when a
// model is first loaded and keeps the results with the limits of the device (engine/machine_cache.h). Exact
// rows give the same bits, so only speed changes.
#pragma once
#include <functional>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "runtime/model_plan.h"

namespace gimbal {

// Measurements of this build on this device; empty if there are none or the file is damaged.
std::vector<MeasuredProduct> kept_measurements(const Device&);

// Called before each product; false cancels (Failed).
using MeasuringProgress = std::function<bool(const Device&, size_t done, size_t total)>;

// Times the rivals (program/place.h) for each product of the plan whose times `known` lacks, adds the
// times, and saves them if possible. Takes tens of milliseconds each. Skips products that a device fails to
// time; ranks decide those. Returns whether it added any. Errors: Failed when cancelled.
Result<bool> measure_products(const ModelPlan&, std::vector<MeasuredProduct>& known,
                              const MeasuringProgress&);

}  // namespace gimbal
