// Taking a model off this machine: all parts of it, and of a cache whatever only it needs.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace gimbal {

struct Removal {
  std::vector<std::string> files;  // links, blobs and what is left of an interrupted fetch, in this order
  std::vector<std::string> locks;  // of the blobs
  uint64_t bytes = 0;              // that are free afterwards
  std::string root;                // the cache that it is in; folders below that are left empty go, too
};

// `path`: of the model's first file. A blob stays while another name of the cache needs it. Of a file in
// neither cache (root is empty): the file and its parts. Errors: Failed with the system's reason.
Result<Removal> removal_of(const std::string& path);
// Errors: Failed when one of the files is being fetched, or with the system's reason.
Status remove(const Removal&);

}  // namespace gimbal
