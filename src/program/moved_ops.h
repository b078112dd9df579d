// Which stage computes each op when rules place tensors on other devices than their layers.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "program/partition.h"

namespace gimbal {

// The stage that a rule wants a weight on; `rule` is the caller's number for it.
struct WeightPlace {
  size_t stage;
  int rule;
};

struct MovedOps {
  StageOf stage;
  std::vector<int> rule;  // of every op: the rule that moved it; -1: it is with its layer
};

// `layer_stages`: the stage of every op's layer. `weights`: by index in Program::weights; nullopt: no rule.
// An op is where its largest weight is. An op without weights is where most of its inputs come from, if ops
// that were moved compute them. A quantization is where its result is read. Ops that read or write state stay
// with their layer, and so do their weights. Errors: Usage if an op cannot be where a rule wants one of its
// weights; for an op with state only if the rule moves nothing else.
Result<MovedOps> move_ops(const Program&, const std::vector<size_t>& layer_stages,
                          std::span<const std::optional<WeightPlace>> weights);

}  // namespace gimbal
