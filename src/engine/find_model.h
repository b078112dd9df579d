// What a model's name means: a path, a name from the catalog (model_catalog.h), or the model inside the
// program.
#pragma once
#include <memory>
#include <string>

#include "base/result.h"
#include "files/gguf.h"

namespace gimbal {

struct ModelFile {
  std::string name;  // for people
  std::string path;  // empty: inside the program
  std::shared_ptr<const Gguf> file;
};

// Finds and opens it. Empty or "default": the one inside the program. Errors: NotFound (no-such-model),
// saying what was looked for and where, with a name that is similar as Error::changes; Usage
// (ambiguous-model) for a name that several models have; those of Gguf::open.
// `kernel_config`: ternary_choice() of files/ternary_layout.h, whose errors come, too.
Result<ModelFile> open_model_file(const std::string& model, const std::string& kernel_config = "");

}  // namespace gimbal
