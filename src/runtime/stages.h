// The stages of a plan: which device has which layers, and which ops are elsewhere by rules.
#pragma once
#include "program/moved_ops.h"
#include "runtime/model_plan.h"

namespace gimbal {

// Without programs. The devices of `rules` that hold no layers come first: the last stage has the output
// head. Errors: Usage if the layers do not add up to the model's.
Result<std::vector<Stage>> stages_of(std::span<const Placement> where, int layers,
                                     const std::vector<TensorRule>& rules);

// The stages of the ops of a program, and the rules that moved them. `rules`: of every tensor of the file.
// Errors: those of move_ops().
Result<MovedOps> places_of_ops(const Program&, const ModelPlan&, const std::vector<int>& rules);

// Counts the tensors that rules move, in the plan's stages.
void count_moved(const Program&, const MovedOps&, ModelPlan&);

}  // namespace gimbal
