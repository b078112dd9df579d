// Measurements on this machine, before a model runs: the fastest of several kernel rows, and the speed of
// experts on disk.
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

// How fast a model whose experts are read from disk (runtime/disk_experts.h) can be on this machine:
// measured, before it is loaded, with reads of its own experts.
struct ExpertSpeed {
  double disk = 0;    // bytes/s: experts in random order, one after the other, past the system's page cache
  double memory = 0;  // bytes/s: read by as many threads as the device has
  uint64_t of_token = 0, computed = 0;  // bytes of the experts that a token chooses; of all that it reads
  bool direct = false;                  // past the page cache; else the system copies each byte once more
  // Tokens/s of one text: if no chosen expert is in memory; if all are chosen equally often, so that the
  // share of them in memory is that of the budget. Texts that choose some more often are faster than the
  // latter.
  double at_least = 0, evenly = 0;
};

// Reads some tens of megabytes, for half a second at most. Errors: Usage if no stage of the plan reads
// experts (with packed weights); those of FilePages.
Result<ExpertSpeed> measure_experts(const ModelPlan&);

}  // namespace gimbal
