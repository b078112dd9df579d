// OpenCL as a backend. Options: cache=FOLDER, no_subgroups=1 (runtime.h), and those of all GPU backends
// (gpu/device.h).
#include "backends/opencl/runtime.h"
#include "device/backend_impl.h"
#include "gpu/depends.h"
#include "gpu/device.h"
#include "gpu/modules.h"

namespace gimbal::opencl {
namespace {

struct Backend {
  static constexpr const char* kName = "opencl";
  static int count() {
    Api api;
    std::vector<Found> found;
    if (Api::load(kLibrary, &api) || find_devices(api, &found)) return 0;
    return int(found.size());
  }
  static gpu::Failure open(int index, gpu::Options& options, gpu::Opened* out) {
    Options o;
    if (const auto folder = options.take("cache")) o.cache = *folder;
    if (auto f = options.take_flag("no_subgroups", &o.no_subgroups)) return f;
    Api api;
    if (Failure f = Api::load(kLibrary, &api)) return f;
    std::unique_ptr<Opencl> runtime;
    if (Failure f = opencl::open(api, index, o, &runtime)) return f;
    *out = {std::move(runtime), gpu::opencl_modules()};
    out->tensor_kernels = gpu::tensor_opencl_modules(), out->text_kernels = gpu::text_opencl_modules();
    return {};
  }
  // The places of ocl-icd and of Khronos' loader; the variables of these and of the drivers.
  static const char* depends_on() {
    static const gpu::Depends all = [] {
      gpu::Depends d(
          "OCL_*\nOPENCL_*\nCL_*\nPOCL_*\nRUSTICL_*\nCLVK_*\nNEO*\nZE_*\nINTEL_*\nMESA_*\nGALLIUM_*\n"
          "RADV_*\nAMD_*\nGPU_*\nROCR_*\nHSA_*\nHIP_*\nCUDA_*\nNVIDIA_*\nVK_*\nHOME\n"
          "/etc/OpenCL/vendors/*\n");
      return d.files("OCL_ICD_VENDORS")
          .files("OCL_ICD_FILENAMES")
          .files("OPENCL_VENDOR_PATH")
          .also(gpu::kGpuNodes);
    }();
    return all.text();
  }
};

}  // namespace
}  // namespace gimbal::opencl

GIMBAL_EXPORT_BACKEND(gimbal::gpu::DeviceOf<gimbal::opencl::Backend>)
