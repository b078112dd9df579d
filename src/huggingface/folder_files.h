// The files of a model folder.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace gimbal {

inline constexpr const char* kFolderConfig = "config.json";

bool file_exists(const std::string& path);
std::string without_slash(std::string path);

// Paths: texts, then shards. Errors: those of find_shards(). In folder.cpp.
Result<std::vector<std::string>> files_of_folder(const std::string& path);

// The files of weights in a folder: one, or several with an index of which tensor lies in which.
struct Shards {
  std::vector<std::string> names;         // of files in the folder, sorted
  std::map<std::string, size_t> tensors;  // by name the number of the file; empty without an index
  std::string index;                      // the file's name; empty without one
};

// Errors: Malformed if the folder has neither model.safetensors nor its index; Malformed for an index that is
// none, or that names a file outside of the folder.
Result<Shards> find_shards(const std::string& folder);

}  // namespace gimbal
