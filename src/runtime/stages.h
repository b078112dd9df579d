// The stages of a plan: which device has which layers, by the user's word or by what fits a GPU; and which
// ops are elsewhere by rules.
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

// ---- layers divided between a GPU and the CPU
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
