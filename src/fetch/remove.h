// Deletes a model from this machine: all its parts, and cache files that no other model uses.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace gimbal {

struct Removal {
  std::vector<std::string> files;  // links, blobs and remains of an interrupted download, in this order
  std::vector<std::string> locks;  // of the blobs
  uint64_t bytes = 0;              // freed by the removal
  std::string root;                // the cache; empty folders below it are removed, too
};

// `path`: the model's first file. Keeps blobs that other links of the cache use. For a file outside the two
// caches (root is empty): the file and its parts. Errors: Failed with the system's reason.
Result<Removal> removal_of(const std::string& path);
// Errors: Failed if one of the files is being fetched, or with the system's reason.
Status remove(const Removal&);

}  // namespace gimbal
