// Lists all devices of all OpenCL platforms with their properties.
#pragma once
#include <vector>

#include "backends/opencl/api.h"

namespace gimbal::opencl {

struct Found {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  cl_device_type type = 0;
};

// GPUs first, then accelerators, then CPUs; otherwise in the platforms' order. Fails (Unsupported) with the
// reason and remedy if there is none.
Failure find_devices(const Api&, std::vector<Found>* out);

struct Described {
  gpu::Facts facts;
  std::string identity;       // of device and driver: the key of compiled programs
  std::string build_options;  // for the driver's compiler
  // For texts with sub-group exchanges; empty: the driver reports no such functions.
  std::string subgroup_options;
};

// Fails (Unsupported) with the reason if the device cannot run the kernels.
Failure describe(const Api&, const Found&, Described* out);

}  // namespace gimbal::opencl
