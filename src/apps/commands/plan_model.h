// Plans a model for commands that inspect it without loading.
#pragma once
#include <string>
#include <vector>

#include "apps/options/options.h"
#include "engine/engine.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {

// With the tokenizer in memory, as in a real load, so that the free memory is the same.
struct Planned {
  std::unique_ptr<PlannedModel> draft;  // the drafting model's plan; nullptr: none
  std::unique_ptr<PlannedModel> image;  // of the encoder of pictures, at the largest picture; nullptr: none
  PlannedModel model;
  std::unique_ptr<Tokenizer> tokenizer;  // nullptr if the file has none
};

// `mmproj`: a projector file. Errors: those of engine_options, open_model_file, plan_drafts, open_projector,
// check_projector and Engine::plan.
Result<Planned> plan_model(const std::string& model, const CommonOptions&, bool quiet,
                           Result<PlannedModel> (Engine::*plan)(const ModelFile&),
                           const std::string& draft = "off", const std::optional<std::string>& mmproj = {});

// "all 32 layers on cpu:0 (why)", or one line per part.
std::vector<std::string> placement_lines(const PlannedModel&);

}  // namespace gimbal
