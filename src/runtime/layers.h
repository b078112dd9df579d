// Divides the layers of a model between a GPU and the CPU.
#pragma once
#include "runtime/model_plan.h"

namespace gimbal {

inline constexpr int kAsManyAsFit = -1;

// Places the last `layers` layers and the output head on `device`, the embedding table and the first layers
// on `cpu`. So a token crosses between them once, and the largest matrix, the head, is on the fast device.
// All layers or more: everything on `device`, including the embedding table; 0: everything on `cpu`.
// kAsManyAsFit: by the memory plans and the free memory of `device`; if only the embedding table does not
// fit, it alone is on the CPU. Where `experts_may_move`, all layers are on `device` and the experts of as few
// layers as possible on `cpu`, if that fits and a token then reads less on `cpu` than with whole layers
// there: a rule of the plan's that `options` has not. Each stage has the reason for its place. Errors: those
// of make_model_plan. Does not check the memory of the CPU's stage: check_memory does.
Result<ModelPlan> place_layers(const ModelSource& file, const Device& device, const Device& cpu, int layers,
                               const RunOptions& options, bool experts_may_move = true);

}  // namespace gimbal
