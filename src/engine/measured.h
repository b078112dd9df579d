// Which of several rows of a device's table computes a model's large products fastest on this machine: timed
// when a model is first loaded, and kept with the limits of the device (engine/findings.h). Exact rows give
// the same bits, so this changes times and nothing else.
#pragma once
#include <functional>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "runtime/model_plan.h"

namespace gimbal {

// What was measured on this device by this build; empty where nothing was, or it is damaged.
std::vector<MeasuredProduct> kept_measurements(const Device&);

// Called before each product; false cancels (Failed).
using MeasuringProgress = std::function<bool(const Device&, size_t done, size_t total)>;

// Times the rivals (program/place.h) for each product of the plan whose times `known` lacks, adds them, and
// keeps them for the next start where that can be done. Tens of milliseconds each. What a device fails to
// time is left out: then ranks decide. Answers whether anything was added. Errors: Failed when cancelled.
Result<bool> measure_products(const ModelPlan&, std::vector<MeasuredProduct>& known,
                              const MeasuringProgress&);

}  // namespace gimbal
