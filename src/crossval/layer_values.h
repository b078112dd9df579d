// The value that each layer of a program passes on: the residual stream, as papers call it.
#pragma once
#include <string>
#include <vector>

#include "program/program.h"

namespace gimbal::crossval {

struct LayerValue {
  int layer;
  size_t last_op;  // of the layer
  uint16_t value;  // index into Program::values; f32[width, rows]
  std::string name;
};

// One for each layer that passes rows of `width` numbers on; of several such values the one computed last.
// None if another has the same name.
std::vector<LayerValue> layer_values(const Program&, int width);

}  // namespace gimbal::crossval
