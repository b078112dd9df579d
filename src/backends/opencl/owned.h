// RAII for OpenCL objects.
#pragma once
#include "backends/opencl/api.h"
#include "gpu/owned.h"

namespace gimbal::opencl {

template <class Handle, auto Release>
using Owned = gpu::Owned<Api, Handle, Release>;

using Context = Owned<cl_context, &Api::clReleaseContext>;
using Queue = Owned<cl_command_queue, &Api::clReleaseCommandQueue>;
using Memory = Owned<cl_mem, &Api::clReleaseMemObject>;
using Program = Owned<cl_program, &Api::clReleaseProgram>;
using KernelObject = Owned<cl_kernel, &Api::clReleaseKernel>;

}  // namespace gimbal::opencl
