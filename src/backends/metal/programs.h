// Kernel texts (MSL) compiled by the system, when a model asks for them.
#pragma once
#include "backends/metal/objects.h"

namespace gimbal::metal {

// Errors: Unsupported, with what the compiler says, or when a group has more lanes than the pipeline takes.
Failure compile(id<MTLDevice>, const simt::KernelCode&, Owned<id<MTLComputePipelineState>>* out);

}  // namespace gimbal::metal
