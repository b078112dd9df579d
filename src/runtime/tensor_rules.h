// Rules that place tensors, and the ops that read them, on another device than their layer.
#pragma once
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "files/tensor_table.h"

namespace gimbal {

class Device;

// The matrices and biases of a mixture's experts; not its router, nor an expert for every row.
inline constexpr const char* kExpertTensors = "\\.ffn_(up|down|gate|gate_up)_(ch)?exps";

struct TensorRule {
  std::string pattern;                           // of names: files/name_pattern.h
  const Device* device;                          // outlives the plan and its model
  std::string why;                               // for people: "'cpu_moe'"
  int layers = std::numeric_limits<int>::max();  // for tensors of the first layers only: blk.0 to blk.(n - 1)
};

// For each tensor the first rule that it matches, as an index; -1: none. Errors: Usage for a pattern that is
// none.
Result<std::vector<int>> rules_of_tensors(const TensorTable&, std::span<const TensorRule>);

}  // namespace gimbal
