// What a plan is, as JSON for readers: memory by kind and device, and the kernel of every op with the reason
// and those that were not taken.
#pragma once
#include "base/json_fwd.h"
#include "runtime/model_plan.h"

namespace gimbal {

// Bytes by kind.
Json memory_json(const MemoryPlan&);
// "devices" and "host": what a plan takes, and what was free when it was made.
void add_memory(Json& to, const ModelPlan&);

// Bytes of weights that a token needs: every matrix whole, one row of an embedding table.
double weight_bytes_per_token(const Program&);

// A whole plan, for a page that draws it. A model has thousands of ops and a device hundreds of kernels, so
// ops that are computed alike share an entry of "choices": {op, format, device, kernel, why, rejected: [{why,
// kernels}]}, and each op in "programs" is [name, output, index of its choice].
Json explanation(const ModelPlan&);

}  // namespace gimbal
