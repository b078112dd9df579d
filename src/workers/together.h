// Checks that processes that allocate at the same time fit into memory together: each of them sees the same
// memory as free.
#pragma once
#include <span>

#include "runtime/model_plan.h"
#include "workers/message.h"

namespace gimbal {

// The memory that a process will take. Packed weights of the plan count as shared.
wire::Planned planned_needs(const ModelPlan&);

// All processes load the same file, so their shared bytes are the same. Errors: OutOfMemory, with numbers
// and remedy, if they need more of a memory than the least free amount that any of them reported.
Status fit_together(std::span<const wire::Planned>);

}  // namespace gimbal
