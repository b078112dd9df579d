// The outputs of a model's layers: in a program, and computed on one of our devices.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "files/model_source.h"
#include "program/program.h"
#include "runtime/model_plan.h"

namespace gimbal::crossval {

// The model is divided into one stage for each layer, so that every output passes through the host. The
// numbers are those of the undivided model.
using LayerSink = std::function<void(int layer, int width, std::span<const float> rows)>;

// Computes all tokens in one batch. `options`: batch and logit_rows are set here, and a context that is
// too small. Errors: those of
// make_model_plan, Model::load and Session::advance.
Status our_layers(const ModelSource& file, const Device& device, RunOptions options,
                  std::span<const int32_t> tokens, const LayerSink&);

// The value that each layer of a program passes on: the residual stream, as papers call it.
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
