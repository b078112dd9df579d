// The files of a model folder.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace gimbal {

inline constexpr const char* kFolderConfig = "config.json";

bool file_exists(const std::string& path);
std::string without_slash(std::string path);

// Paths: texts, then shards. Errors: those of find_shards(). In folder.cpp.
Result<std::vector<std::string>> files_of_folder(const std::string& path);

}  // namespace gimbal
