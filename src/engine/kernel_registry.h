// The kernel registry as the public interface has it (gimbal/kernels.h), from the reports on this machine's
// backends.
#pragma once
#include <gimbal/kernels.h>

#include <span>

#include "base/json_fwd.h"
#include "discovery/named_kernels.h"

namespace gimbal {

KernelCapabilities kernel_registry(std::span<const BackendReport>);
// {"names": [{name, capable, devices, why_not, rows}], "flags", "cuda_available", "simd_level"}
Json registry_json(const KernelCapabilities&);

}  // namespace gimbal
