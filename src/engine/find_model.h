// Resolves a model's name: a path, a name from the catalog (model_catalog.h), an address of a downloaded
// model (fetch/address.h), or the model inside the program.
#pragma once
#include <gimbal/settings.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/change_metadata.h"
#include "files/model_source.h"
#include "model/lora.h"

namespace gimbal {

struct ModelFile {
  std::string name;  // for people
  std::string path;  // empty: inside the program
  std::shared_ptr<const ModelSource> file;
};

struct ModelFileOptions {
  std::string kernel_config;          // see ternary_choice() of files/ternary_layout.h
  std::vector<Lora> lora;             // adapters, each with its scale
  ModelOptions changes = {};          // of these, what change_metadata() takes
  std::vector<RopeChange> rope = {};  // of a certificate, in place of such changes
};

// The location of a model.
struct FoundModel {
  std::string name;    // for people
  std::string path;    // empty: inside the program
  std::string source;  // as in CatalogEntry; empty if the user gave a path
};
// Errors: as open_model_file, without those of opening the file.
Result<FoundModel> find_model(const std::string& model);

// Makes a ModelFile from an opened file and the options. Errors: that of `file`, and those of the
// options.
Result<ModelFile> model_file(std::string name, const std::string& path, Result<ModelSource> file,
                             const ModelFileOptions&);

// Finds and opens it. Empty or "default": the one inside the program. Errors: NotFound
// (no-such-model), with the name, the places searched, and a similar name in Error::changes; Usage
// (ambiguous-model) if several models have the name; NotFound (not-fetched) if the model of an address
// is not downloaded; those of Gguf::open. Errors of the options: those of ternary_choice(),
// change_metadata() and add_lora().
Result<ModelFile> open_model_file(const std::string& model, const ModelFileOptions& = {});

}  // namespace gimbal
