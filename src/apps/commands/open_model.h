// Models for commands: opened by file, name or address, also by the address of a model that is not here yet;
// and planned without loading.
#pragma once
#include <string>
#include <vector>

#include "apps/options/options.h"
#include "apps/reports/pull_console.h"
#include "engine/engine.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {

// Opens a model to run it. Fetches missing files, after it reports size and fit. Errors: those of
// open_model_file and of Pull; OutOfMemory, before fetching, if the plan does not fit.
Result<ModelFile> open_model(const std::string& model, const CommonOptions&, bool quiet);

// Opens a model to inspect it. Reads the header of a remote model over the network; fetches no
// weights.
Result<ModelFile> open_header(const std::string& model, const ModelFileOptions&, bool quiet);

// The header of a model being fetched. The Pull must outlive the result.
Result<ModelFile> header_of(const Pull&, const ModelFileOptions&);

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
