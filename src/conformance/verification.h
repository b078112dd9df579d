// Checks the kernels that a model needs on the actual device before their first use. Kernels with wrong
// results are quarantined with the evidence, and the next ones in rank are checked instead.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "program/place.h"

namespace gimbal {

struct KernelVerdict {
  bool passed = false;
  int cases = 0;      // cases run
  std::string wrong;  // why it must not be used: the first wrong number, or that no case matches
};

// Known verdicts by kernel name, for one device, driver and build.
using KernelVerdicts = std::map<std::string, KernelVerdict>;

// Called before each kernel; false cancels (Failed).
using VerificationProgress = std::function<bool(const char* kernel)>;

// Runs the conformance cases (ops/cases.h, against the double-precision reference) of the kernels without a
// verdict in `known`, and adds the verdicts. Errors: if a kernel loses the device or cannot allocate, that of
// the device: DeviceLost, OutOfMemory.
Status verify_kernels(const Device& device, const std::vector<size_t>& kernels, KernelVerdicts& known,
                      const VerificationProgress& progress = {});

// The distinct kernels of these choices, in the order of the device's table.
std::vector<size_t> kernels_of(const std::vector<Choice>& choices);

// The kernels that assign_kernels() must exclude.
std::vector<Quarantined> quarantined(const KernelVerdicts& known);

}  // namespace gimbal
