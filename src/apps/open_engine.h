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

// With its weights on the devices; shows progress on a terminal.
Result<LoadedModel> load_model(ModelFile source, const EngineOptions& options, const RunOptions& run,
                               bool quiet);

}  // namespace gimbal
