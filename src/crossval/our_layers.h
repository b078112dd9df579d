// The outputs of a model's layers on one of our devices: the model is divided into one stage for each layer,
// so that every output passes through the host. The numbers are those of the undivided model.
#pragma once
#include <functional>
#include <span>

#include "files/model_source.h"
#include "runtime/model_plan.h"

namespace gimbal::crossval {

using LayerSink = std::function<void(int layer, int width, std::span<const float> rows)>;

// Computes all tokens in one batch. `options`: batch and logit_rows are set here, and a context that is
// too small. Errors: those of
// make_model_plan, Model::load and Session::advance.
Status our_layers(const ModelSource& file, const Device& device, RunOptions options,
                  std::span<const int32_t> tokens, const LayerSink&);

}  // namespace gimbal::crossval
