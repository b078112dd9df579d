// From the words of the command line to a plan: which devices, and which layers on each.
#pragma once
#include <memory>
#include <vector>

#include "apps/find_model.h"
#include "apps/options.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {

// Members are in the order in which they depend on each other; the last is destroyed first.
struct PlannedModel {
  ModelFile source;
  OpenedDevice opened;                          // the one that was asked for or chosen
  std::vector<std::unique_ptr<Device>> others;  // that hold a part of the model, too, or may
  Blueprint blueprint;
  std::unique_ptr<Tokenizer> tokenizer = {};  // of open_and_plan, where the file has one
};

// From the file's header alone. What does not fit on a GPU goes to the CPU layer by layer, which is a
// fallback and told as one unless --gpu-layers -1 asked for it. Errors: those of open_device and
// make_blueprint; Usage for a --split that is none; OutOfMemory under --strict in place of that fallback.
// `source` is taken along on success only.
Result<PlannedModel> plan_model(ModelFile&& source, const EngineOptions& options, const RunOptions& run,
                                bool quiet);

// A model by its name, for commands that only look at its plan. `plan`: plan_model, or plan_verified
// (first_use.h). Errors: those of open_model_file, run_options and `plan`. With the tokenizer in memory, as
// it is when a model is loaded, so that what is free is the same.
Result<PlannedModel> open_and_plan(const std::string& model, const EngineOptions& options, bool quiet,
                                   decltype(plan_model) plan);

// "all 32 layers on cpu:0 (why)", or a line for each part.
std::vector<std::string> placement_lines(const PlannedModel&);

}  // namespace gimbal
