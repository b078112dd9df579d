// Chooses the size of the KV cache that the sequences of a model share, by the free memory of its devices.
#pragma once
#include "runtime/model_plan.h"

namespace gimbal {

struct CacheBudget {
  int64_t most = 0;    // positions that can be used; 0: keep the plan's own
  int64_t modest = 0;  // positions that may also use the memory to be left free
  int models = 1;      // models that share the devices
  int together = 1;    // processes that see the same memory free now, and take it at once
};

// Positions in the plan's shared cache pages that keep whole texts; 0: there are none.
int64_t cache_positions(const ModelPlan&);

// The plan, made from `file`, with more positions of cache (RunOptions::cache_positions), never fewer: the
// requested number, as far as it fits its devices. Leaves free a sixteenth of a device's memory, and space
// for the weights again, which the same model needs to compute embeddings, too; on the host half of the
// memory, for other programs. Errors: those of make_model_plan.
Result<ModelPlan> with_larger_cache(const ModelSource& file, ModelPlan plan, const CacheBudget&);

}  // namespace gimbal
