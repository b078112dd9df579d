// Selects the files of a repository that form the requested model: one quantization, all of its parts.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fetch/address.h"

namespace gimbal {

struct RemoteName {
  std::string path;  // in the repository
  uint64_t bytes = 0;
};

// The first file of a repository that is a folder as transformers writes it.
inline constexpr const char* kFolderMark = "config.json";

// A model in a repository.
struct FileChoice {
  std::string quant;          // "Q4_K_M", in capitals; empty if the name has none
  std::vector<size_t> files;  // indices in the list, in the order of the parts
  uint64_t bytes = 0;         // of all of them
  std::string path;           // of the first
};

// The quantizations to try if an address names none, most preferred first.
std::span<const char* const> default_quants();

// All models among the files. Excludes vision projectors (mmproj), importance matrices and split models
// with missing parts.
std::vector<FileChoice> choices(const std::vector<RemoteName>& files);

// The model that the address names; of a repository without GGUF files, and without a quantization in the
// address, the folder of safetensors that it is: kFolderMark first, then the other texts, then all shards.
// Errors: NotFound, with the available models and their sizes; Usage (ambiguous-model) if several fit equally
// well.
Result<FileChoice> choose(const std::vector<RemoteName>& files, const ModelAddress&);

}  // namespace gimbal
