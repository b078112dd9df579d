// Divides the layers of a model between a GPU and the CPU.
#pragma once
#include "runtime/model_plan.h"

namespace gimbal {

inline constexpr int kAsManyAsFit = -1;

// The last `layers` layers and the output head on `device`; the embedding table and the first layers on
// `cpu`. So a token crosses from one to the other once, and the largest matrix, the head, is where the speed
// is. All layers of the model or more: everything on `device`, the embedding table, too; 0: everything on
// `cpu`. kAsManyAsFit: by the memory plans and what `device` has free; when all layers fit but the embedding
// table does not, it alone is on the CPU. Each stage says why it is where it is. Errors: those of
// make_model_plan; what the CPU's stage takes is not checked here, check_memory does.
Result<ModelPlan> place_layers(const ModelSource& file, const Device& device, const Device& cpu, int layers,
                               const RunOptions& options);

}  // namespace gimbal
