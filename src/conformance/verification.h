// The kernels that a model needs, checked on this very device before they are believed: those that give wrong
// numbers are set aside with the numbers, and the next ones in rank are checked in their place.
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
  int cases = 0;      // that were run
  std::string wrong;  // why it may not be used: the first wrong number, or that no case reaches it
};

// What is known of a device's kernels, by kernel name. Belongs to one device, driver and build.
using KernelVerdicts = std::map<std::string, KernelVerdict>;

// Called before each kernel; false cancels (Failed).
using VerificationProgress = std::function<bool(const char* kernel)>;

// Runs the conformance cases (ops/cases.h, against the double-precision reference) of those kernels that
// `known` says nothing about, and adds what was found to it. A kernel that loses the device or gets no memory
// is an error of the device: DeviceLost, OutOfMemory.
Status verify_kernels(const Device& device, const std::vector<size_t>& kernels, KernelVerdicts& known,
                      const VerificationProgress& progress = {});

// The kernels of these choices, each once, in the order of the device's table.
std::vector<size_t> kernels_of(const std::vector<Choice>& choices);

// What assign_kernels() must leave out.
std::vector<Quarantined> quarantined(const KernelVerdicts& known);

}  // namespace gimbal
