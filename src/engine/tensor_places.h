// Where a plan puts each tensor: for `gimbal plan --tensors`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "runtime/model_plan.h"

namespace gimbal {

struct TensorPlace {
  std::string name, format;  // "blk.0.attn_q.weight", "q8_0"
  std::string shape;         // "64x172"
  std::string layout;        // "packed" (the device's own), or "file"
  std::string buffer;        // "weights"; or the file that they are mapped from
  std::string device;        // its id
  uint64_t offset = 0;       // in the buffer
  uint64_t bytes = 0;        // in this layout
  uint64_t gap = 0;          // behind it, up to the next one
  std::string op, kernel;    // the first op that reads it; empty: none does
  std::string why;           // why it is on this device
};

// In the order of the buffers. The bytes and gaps of a device add up to the plan's weights there.
std::vector<TensorPlace> tensor_places(const ModelPlan&);
Json report_json(const std::vector<TensorPlace>&);

}  // namespace gimbal
