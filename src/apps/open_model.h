// A model by whatever names it, for commands: also by an address whose model is not on this machine yet.
#pragma once
#include "apps/options.h"
#include "apps/pull_console.h"

namespace gimbal {

// To run it: what is not here is fetched, with its size and what fits said before. Errors: those of
// open_model_file and of Pull; OutOfMemory, before anything is fetched, where its plan does not fit.
Result<ModelFile> open_model(const std::string& model, const CommonOptions&, bool quiet);

// To look at it: of what is not here the header is read over the network, and the weights stay where they
// are.
Result<ModelFile> open_header(const std::string& model, const ModelFileOptions&, bool quiet);

// The header of one that is being fetched. It must outlive the result.
Result<ModelFile> header_of(const Pull&, const ModelFileOptions&);

}  // namespace gimbal
