// SHA-256 of a model's files. Reading a large file takes seconds, so digests can be remembered in the user's
// cache folder while the files are unchanged.
#pragma once
#include <span>
#include <string>

#include "base/result.h"

namespace gimbal {

struct FileDigest {
  std::string sha256;
  uint64_t bytes = 0;
};

// Of the contents of these files, one behind the other. `remembered`: an earlier result is enough if no file
// has changed since, by its size, times and inode. Errors: those of InputFile.
Result<FileDigest> digest_of_files(std::span<const std::string> paths, bool remembered);

}  // namespace gimbal
