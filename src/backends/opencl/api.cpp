#include "backends/opencl/api.h"

#include <dlfcn.h>

#include "base/format.h"
#include "device/reason.h"

namespace gimbal::opencl {

Failure Api::load(const char* library, Api* out) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    const char* why = dlerror();
    return {Failure::Unsupported,
            format("OpenCL is not installed: {}\nInstall the loader of drivers "
                   "(ocl-icd-libopencl1 in Debian) and the driver of "
                   "your device's maker",
                   why ? why : library),
            reason::kLibraryMissing};
  }
  struct {
    const char* name;
    void** at;
  } const wanted[] = {
#define OPENCL_FUNCTION(name) {#name, reinterpret_cast<void**>(&out->name)},
#include "backends/opencl/functions.def"
#undef OPENCL_FUNCTION
  };
  for (const auto& f : wanted)
    if (!(*f.at = dlsym(handle, f.name))) {
      dlclose(handle);
      return {Failure::Unsupported,
              format("{} is too old: it has no {}, which OpenCL 1.2 has", library, f.name),
              reason::kDriverTooOld};
    }
  dlclose(handle);  // RTLD_NODELETE keeps it
  return {};
}

std::string name_of(cl_int error) {
  switch (error) {
#define OPENCL_ERROR(name, number) \
  case number:                     \
    return #name " (" #number ")";
#include "backends/opencl/errors.def"
#undef OPENCL_ERROR
    default: return format("error {}", error);
  }
}

Failure failure(cl_int error, std::string_view doing) {
  Failure::Code code = Failure::Invalid;
  switch (error) {
    case CL_SUCCESS: return {};
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY: code = Failure::OutOfMemory; break;
    case CL_COMPILER_NOT_AVAILABLE:
    case CL_BUILD_PROGRAM_FAILURE:
    case -1001:  // CL_PLATFORM_NOT_FOUND_KHR, of the loader
    case CL_DEVICE_NOT_FOUND: code = Failure::Unsupported; break;
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_INVALID_COMMAND_QUEUE:  // the runtime has one, and it was valid
    case CL_INVALID_CONTEXT:
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
    case -9999:  // NVIDIA: a kernel reached outside its buffers
      code = Failure::DeviceLost;
      break;
    default: break;
  }
  return {code, format("{}: {}", doing, name_of(error))};
}

Failure failure_of_commands(cl_int error, std::string_view doing) {
  Failure f = failure(error, doing);
  if (f && error != CL_INVALID_VALUE) f.code = Failure::DeviceLost;
  return f;
}

}  // namespace gimbal::opencl
