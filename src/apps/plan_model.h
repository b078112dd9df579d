// A model's plan, for commands that look at it and load nothing.
#pragma once
#include <string>
#include <vector>

#include "apps/options.h"
#include "engine/engine.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {

// With the tokenizer in memory, as it is when a model is loaded, so that what is free is the same.
struct Planned {
  std::unique_ptr<PlannedModel> draft;  // what drafts for it; nullptr: nothing
  PlannedModel model;
  std::unique_ptr<Tokenizer> tokenizer;  // where the file has one
};

// Errors: those of engine_options, open_model_file, plan_drafts and Engine::plan.
Result<Planned> plan_model(const std::string& model, const CommonOptions&, bool quiet,
                           Result<PlannedModel> (Engine::*plan)(const ModelFile&),
                           const std::string& draft = "off");

// "all 32 layers on cpu:0 (why)", or a line for each part.
std::vector<std::string> placement_lines(const PlannedModel&);

}  // namespace gimbal
