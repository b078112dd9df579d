// The emulator as a backend. Options: bounds=1, racecheck=1, seed=N, subgroup=N, memory=BYTES (runtime.h),
// max_binding=BYTES, idle=KERNEL, matrix=1 (a device with matrix units).
#include <bit>

#include "backends/emulator/runtime.h"
#include "base/format.h"
#include "device/backend_impl.h"
#include "gpu/device.h"
#include "gpu/modules.h"

namespace gimbal::emulator {
namespace {

struct Api {
  static constexpr const char* kName = "emulator";
  static int count() { return 2; }  // two equal devices, to test splits
  static gpu::Failure open(int, gpu::Options& options, gpu::Opened* out) {
    Options o;
    if (auto f = options.take_flag("bounds", &o.bounds)) return f;
    if (auto f = options.take_flag("racecheck", &o.racecheck)) return f;
    if (auto f = options.take_number("seed", &o.seed)) return f;
    if (auto f = options.take_number("subgroup", &o.subgroup)) return f;
    if (o.subgroup > 64 || o.subgroup == 2 || std::popcount(o.subgroup) != 1)
      return {gpu::Failure::Invalid,
              format("subgroup={}: a sub-group has 4, 8, 16, 32 or 64 lanes; 1: there are none", o.subgroup)};
    if (auto f = options.take_number("memory", &o.memory)) return f;
    o.idle = options.take("idle").value_or("");
    bool matrix = false;
    if (auto f = options.take_flag("matrix", &matrix)) return f;
    *out = {emulator::open(o), gpu::emulator_modules()};
    out->tensor_kernels = gpu::tensor_emulator_modules();
    if (matrix) out->matrix_kernels = gpu::matrix_emulator_modules();
    return {};
  }
};

}  // namespace
}  // namespace gimbal::emulator

GIMBAL_EXPORT_BACKEND(gimbal::gpu::DeviceOf<gimbal::emulator::Api>)
