// What MODEL means on the command line: a path, a name that `gimbal models` lists, or the model inside the
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
  std::unique_ptr<Gguf> file;
};

inline constexpr const char* kModelHelp =
    "a file, a name that `gimbal models` lists, or `default`: the one inside the program";

// Finds and opens it. Errors: NotFound, saying what was looked for and where; Usage for a name that several
// models have; those of Gguf::open.
Result<ModelFile> open_model_file(const std::string& model);

}  // namespace gimbal
