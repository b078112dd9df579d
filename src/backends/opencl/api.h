// OpenCL as functions found at run time: nothing is linked, so that a program with this backend starts on
// machines that have no OpenCL, and says so.
#pragma once
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>
#include <string_view>

#include "gpu/runtime.h"

namespace gimbal::opencl {

using simt::Failure;

inline constexpr const char* kLibrary = "libOpenCL.so.1";  // the loader of drivers

struct Api {
#define OPENCL_FUNCTION(name) decltype(&::name) name = nullptr;
#include "backends/opencl/functions.def"
#undef OPENCL_FUNCTION

  // The library stays loaded until the process ends: drivers do not survive being unloaded. Fails
  // (Unsupported) when it cannot be found or is too old, with what to install.
  static Failure load(const char* library, Api* out);
};

// "CL_OUT_OF_RESOURCES (-5)"; "error -9999" for numbers that the standard does not know.
std::string name_of(cl_int error);

// What a call's error means. `doing`: "kernel rms_norm: clCreateKernel". None for CL_SUCCESS.
Failure failure(cl_int error, std::string_view doing);
// Likewise for calls that report what went wrong with earlier commands: whatever it is, what was computed is
// lost, and drivers then call it a lack of resources.
Failure failure_of_commands(cl_int error, std::string_view doing);

}  // namespace gimbal::opencl
