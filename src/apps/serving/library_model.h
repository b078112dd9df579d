// A served model that a libllama computes, in a process of its own.
#pragma once
#include "apps/options/library_options.h"
#include "engine/loader.h"
#include "server/model.h"

namespace gimbal {

// `model_path`: of the file, for the library. Errors: those of the library, and of the file's tokenizer and
// template.
Result<ServedModelPtr> load_library_model(std::string id, const ModelFile& source, std::string model_path,
                                          ChosenLibrary);

}  // namespace gimbal
