// A partial download: its bytes, and a note beside it with the missing ranges. Both survive a crash of the
// program; the note never claims bytes that are not there.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace gimbal {

struct Gap {
  uint64_t at, end;  // missing bytes, [at, end)
};

// Move-only.
class PartFile {
 public:
  // Opens the part file of `target`, or creates it. `version`: distinguishes this content from other
  // content of the same size (a hash, an ETag). If it is empty, parts of earlier runs are not trusted.
  // Errors: Failed with the system's reason.
  static Result<PartFile> open(const std::string& target, uint64_t bytes, const std::string& version);
  PartFile(PartFile&&) noexcept;
  ~PartFile();

  uint64_t bytes() const { return bytes_; }
  bool discarded() const { return discarded_; }  // open() found a part of other content
  uint64_t missing() const;
  int descriptor() const { return fd_; }
  // The thread that fills a gap advances its `at`.
  std::vector<Gap> gaps;
  // Splits the missing bytes into at most `pieces` gaps of a useful size.
  void cut(size_t pieces);
  // Marks all bytes as missing. False if the file cannot be emptied (errno).
  bool restart();

  // Writes the note. Errors: Failed with the system's reason.
  Status note() const;
  // Renames the complete file to the target. Errors as before.
  Status finish();
  void remove();

  const std::string& path() const { return path_; }
  static std::string path_of(const std::string& target) { return target + ".gimbal-part"; }

 private:
  PartFile() = default;
  std::string target_, path_, version_;
  uint64_t bytes_ = 0;
  int fd_ = -1;
  bool discarded_ = false;
};

}  // namespace gimbal
