// OpenCL 1.2 devices: GPUs of all makers whose drivers offer it, and PoCL, which computes on the CPU.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/devices.h"
#include "backends/opencl/programs.h"

namespace gimbal::opencl {

struct Options {
  std::string cache;          // the folder where compiled programs are kept; empty: nowhere
  bool no_subgroups = false;  // as on a device whose sub-groups exchange no values
};

class Opencl : public simt::Runtime {
 public:
  virtual const Programs::Counts& programs() const = 0;  // compiled, and taken from the folder, so far
  // Whether lanes exchange values in sub-groups. Known when the first kernel has been loaded.
  virtual bool subgroups() const = 0;
};

// Device `index` of find_devices(). Errors: Unsupported with the reason (no library, no driver, no such
// device, a device that is too old or lacks something), and what to do about it on a line of its own; Invalid
// for the folder; others as the driver says.
Failure open(const Api&, int index, const Options&, std::unique_ptr<Opencl>* out);

}  // namespace gimbal::opencl
