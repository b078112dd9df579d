// Kernel texts (MSL), compiled by the system on demand.
#pragma once
#include "backends/metal/objects.h"

namespace gimbal::metal {

// Errors: Unsupported, with the compiler's output, or if a group has more lanes than the pipeline supports.
Failure compile(id<MTLDevice>, const gpu::KernelCode&, Owned<id<MTLComputePipelineState>>* out);

}  // namespace gimbal::metal
