// From the words of the command line to a model that is ready to run.
#pragma once
#include <memory>

#include "apps/place_model.h"
#include "runtime/model.h"

namespace gimbal {

// Members are in the order in which they depend on each other; the last is destroyed first.
struct LoadedModel {
  ModelFile source;
  OpenedDevice opened;
  std::vector<std::unique_ptr<Device>> others;  // that hold a part of the model, too
  std::unique_ptr<Model> model;
  double load_seconds = 0;
  std::vector<ReceiptLine> at_start = {};  // what ran before the first prompt: the model's trial
};

// With its weights on the devices, and tried out; shows progress on a terminal. A device that refuses memory
// it said was free, is lost, or computes wrong is replaced by the next best, with a note. Errors: those of
// plan_verified and Model::load; under --strict the first one.
Result<LoadedModel> load_model(ModelFile source, EngineOptions options, const RunOptions& run, bool quiet);

}  // namespace gimbal
