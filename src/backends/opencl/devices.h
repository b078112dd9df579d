// All devices of all OpenCL platforms, and what each is like.
#pragma once
#include <vector>

#include "backends/opencl/api.h"

namespace gimbal::opencl {

struct Found {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  cl_device_type type = 0;
};

// GPUs first, then accelerators, then CPUs; in the platforms' order otherwise. Fails (Unsupported) with the
// reason and what to do when there is none.
Failure find_devices(const Api&, std::vector<Found>* out);

struct Described {
  simt::Facts facts;
  std::string identity;       // of device and driver: what a compiled program depends on
  std::string build_options;  // for the driver's compiler
  // For texts whose lanes exchange values in sub-groups; empty: the driver says nothing of such functions.
  std::string subgroup_options;
};

// Fails (Unsupported) with the reason when the device cannot run the kernels.
Failure describe(const Api&, const Found&, Described* out);

}  // namespace gimbal::opencl
