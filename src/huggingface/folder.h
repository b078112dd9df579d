// Folders of models as transformers writes them: config.json, model.safetensors or its shards, tokenizer.json
// and its companions. They give the metadata, the tensors and the reader that a GGUF file of the model would
// give, so that nothing behind knows the difference. docs/models.md has the families.
#pragma once
#include <string>
#include <vector>

#include "files/gguf.h"
#include "files/model_source.h"

namespace gimbal {

bool is_folder(const std::string& path);
// Whether the path is a folder with a config.json.
bool is_model_folder(const std::string& path);

// Its name, for people: the last part of the whole path.
std::string name_of_folder(const std::string& path);

// Errors: Malformed for a file that the folder lacks, with its name; Malformed and Unsupported with file,
// place, expected and found.
Result<ModelSource> open_folder(const std::string& path);

// A GGUF file or a folder. Errors: those of open_gguf() or open_folder().
Result<ModelSource> open_source(const std::string& path, const TernaryChoice& choice = {});

// The files that a model's answers depend on: all parts of a GGUF file; of a folder config.json, then
// generation_config.json, tokenizer.json, tokenizer_config.json and chat_template.jinja as far as they are
// there, then the shards by their names. Digests are taken over the files in this order. Errors: those of
// reading the index.
Result<std::vector<std::string>> files_of_model(const std::string& path);

}  // namespace gimbal
