// Checks that processes that allocate at the same time fit into memory together: each alone sees all of it
// free.
#pragma once
#include <span>

#include "runtime/model_plan.h"
#include "workers/message.h"

namespace gimbal {

// What a process is about to take. Packed weights of the plan count as shared.
wire::Planned planned_needs(const ModelPlan&);

// All of them compute the same file, so what each shares is the same. OutOfMemory, with the numbers and what
// would help, where they need more of a memory than the one that saw the least of it free.
Status fit_together(std::span<const wire::Planned>);

}  // namespace gimbal
