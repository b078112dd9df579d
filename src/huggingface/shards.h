// The files of weights in a folder: one, or several with an index of which tensor lies in which.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace gimbal {

struct Shards {
  std::vector<std::string> names;         // of files in the folder, sorted
  std::map<std::string, size_t> tensors;  // by name the number of the file; empty without an index
  std::string index;                      // the file's name; empty without one
};

// Errors: Malformed if the folder has neither model.safetensors nor its index; Malformed for an index that is
// none, or that names a file outside of the folder.
Result<Shards> find_shards(const std::string& folder);

}  // namespace gimbal
