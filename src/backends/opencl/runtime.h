// OpenCL 1.2 devices: GPUs of all vendors with OpenCL drivers, and PoCL, which computes on the CPU.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/devices.h"
#include "backends/opencl/programs.h"

namespace gimbal::opencl {

struct Options {
  std::string cache;          // cache folder for compiled programs; empty: no cache
  bool no_subgroups = false;  // behave as a device without sub-group exchanges
};

class Opencl : public gpu::Runtime {
 public:
  virtual const Programs::Counts& programs() const = 0;  // compiled and cached programs so far
  // Whether lanes exchange values in sub-groups. Known after the first kernel was loaded.
  virtual bool subgroups() const = 0;
};

// Opens device `index` of find_devices(). Errors: Unsupported with the reason (no library, no driver, no such
// device, a device that is too old or lacks a feature), and the remedy on a line of its own; Invalid for the
// folder; others as reported by the driver.
Failure open(const Api&, int index, const Options&, std::unique_ptr<Opencl>* out);

}  // namespace gimbal::opencl
