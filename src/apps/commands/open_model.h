// Opens models for commands, by file, name or address; also by the address of a model that is not here yet.
#pragma once
#include "apps/options/options.h"
#include "apps/reports/pull_console.h"

namespace gimbal {

// Opens a model to run it. Fetches missing files, after it reports size and fit. Errors: those of
// open_model_file and of Pull; OutOfMemory, before fetching, if the plan does not fit.
Result<ModelFile> open_model(const std::string& model, const CommonOptions&, bool quiet);

// Opens a model to inspect it. Reads the header of a remote model over the network; fetches no
// weights.
Result<ModelFile> open_header(const std::string& model, const ModelFileOptions&, bool quiet);

// The header of a model being fetched. The Pull must outlive the result.
Result<ModelFile> header_of(const Pull&, const ModelFileOptions&);

}  // namespace gimbal
