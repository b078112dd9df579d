// The kernels of devices by name: the names and needs in a device's table, and the registry of the public
// interface.
#pragma once
#include <gimbal/kernels.h>

#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "device/device.h"
#include "discovery/named_kernels.h"

namespace gimbal {

// Parses the names and needs in a device's kernel table: backend.variant.op.format.
std::string variant_of(const std::string& kernel);  // "avx2" of "cpu.avx2.mat_mul.q4_0"
// "AVX2, FMA": the features that a kernel needs, all of them, or only those that this device lacks; may be
// empty.
std::string needs_of(const gimbal_kernel_info&, const gimbal_device_info&);
std::string missing_of(const gimbal_kernel_info&, const gimbal_device_info&);

struct Variant {
  std::string name;
  std::string missing;  // empty: this device can use it
};
std::vector<Variant> variants_of(const Device&);  // in the order of the table

KernelCapabilities kernel_registry(std::span<const BackendReport>);
// {"names": [{name, capable, devices, why_not, rows}], "flags", "cuda_available", "simd_level"}
Json registry_json(const KernelCapabilities&);

}  // namespace gimbal
