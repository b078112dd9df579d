// From the words of the command line to a model that is ready to run.
#pragma once
#include <memory>

#include "apps/find_model.h"
#include "apps/options.h"
#include "runtime/model.h"

namespace gimbal {

// Members are in the order in which they depend on each other; the last is destroyed first.
struct PlannedModel {
  ModelFile source;
  OpenedDevice opened;
  Blueprint blueprint;
};
struct LoadedModel {
  ModelFile source;
  OpenedDevice opened;
  std::unique_ptr<Model> model;
  double load_seconds = 0;
};

// From the file's header alone. Errors: those of open_device and make_blueprint.
Result<PlannedModel> plan_model(ModelFile source, const EngineOptions& options, const RunOptions& run,
                                bool quiet);
// With its weights on the device; shows progress on a terminal.
Result<LoadedModel> load_model(ModelFile source, const EngineOptions& options, const RunOptions& run,
                               bool quiet);

}  // namespace gimbal
