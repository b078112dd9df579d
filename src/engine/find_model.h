// What a model's name means: a path, a name from the catalog (model_catalog.h), an address whose model is on
// this machine already (fetch/address.h), or the model inside the program.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "files/model_source.h"
#include "model/lora.h"

namespace gimbal {

struct ModelFile {
  std::string name;  // for people
  std::string path;  // empty: inside the program
  std::shared_ptr<const ModelSource> file;
};

struct ModelFileOptions {
  std::string kernel_config;  // see ternary_choice() of files/ternary_layout.h
  std::vector<Lora> lora;     // adapters, each with its scale
};

// Where a model lies.
struct FoundModel {
  std::string name;    // for people
  std::string path;    // empty: inside the program
  std::string source;  // as CatalogEntry; empty of a path
};
// Errors: as open_model_file, but those of opening it.
Result<FoundModel> find_model(const std::string& model);

// Opens one that was found elsewhere, from its file and the options. Errors: that of `file`, and of the
// options.
Result<ModelFile> model_file(std::string name, const std::string& path, Result<ModelSource> file,
                             const ModelFileOptions&);

// Finds and opens it. Empty or "default": the one inside the program. Errors: NotFound (no-such-model),
// saying what was looked for and where, with a name that is similar as Error::changes; Usage
// (ambiguous-model) for a name that several models have; NotFound (not-fetched) for an address whose model is
// not here; those of open_gguf.
// Errors of the options: those of ternary_choice() and add_lora().
Result<ModelFile> open_model_file(const std::string& model, const ModelFileOptions& = {});

}  // namespace gimbal
