// OpenCL functions, loaded at run time rather than linked, so that a program with this backend starts on
// machines without OpenCL and reports that it is missing.
#pragma once
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>
#include <string_view>

#include "base/vendor_libraries.h"
#include "gpu/owned.h"
#include "gpu/runtime.h"

namespace gimbal::opencl {

using gpu::Failure;

inline constexpr const char* kLibrary = driver_files("opencl")[0];  // the ICD loader

struct Api {
#define OPENCL_FUNCTION(name) decltype(&::name) name = nullptr;
#include "backends/opencl/functions.def"
#undef OPENCL_FUNCTION

  // The library stays loaded until the process ends, because drivers do not survive unloading. Fails
  // (Unsupported), with the package to install, if it is missing or too old.
  static Failure load(const char* library, Api* out);
};

// "CL_OUT_OF_RESOURCES (-5)"; "error -9999" for non-standard numbers.
std::string name_of(cl_int error);

// Turns a call's error into a Failure. `doing`: "kernel rms_norm: clCreateKernel". None for CL_SUCCESS.
Failure failure(cl_int error, std::string_view doing);
// The same for calls that report errors of earlier commands: in every case the results are lost, even though
// drivers then report a lack of resources.
Failure failure_of_commands(cl_int error, std::string_view doing);

// RAII for OpenCL objects.
template <class Handle, auto Release>
using Owned = gpu::Owned<Api, Handle, Release>;

using Context = Owned<cl_context, &Api::clReleaseContext>;
using Queue = Owned<cl_command_queue, &Api::clReleaseCommandQueue>;
using Memory = Owned<cl_mem, &Api::clReleaseMemObject>;
using Program = Owned<cl_program, &Api::clReleaseProgram>;
using KernelObject = Owned<cl_kernel, &Api::clReleaseKernel>;

}  // namespace gimbal::opencl
