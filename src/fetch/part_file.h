// A file that has arrived in part: its bytes, and a note beside it which of them are missing. Both outlive
// the program, however it ends; the note never says more than there is.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace gimbal {

struct Gap {
  uint64_t at, end;  // bytes that are missing, [at, end)
};

// Move-only.
class PartFile {
 public:
  // Opens the part of `target`, or begins it. `version`: what tells this content from another one of the same
  // size (a hash, an ETag); empty: nothing does, and a part of an earlier run is not trusted. Errors: Failed
  // with the system's reason.
  static Result<PartFile> open(const std::string& target, uint64_t bytes, const std::string& version);
  PartFile(PartFile&&) noexcept;
  ~PartFile();

  uint64_t bytes() const { return bytes_; }
  bool discarded() const { return discarded_; }  // open() found a part of something else
  uint64_t missing() const;
  int descriptor() const { return fd_; }
  // Whoever fills one moves its `at`.
  std::vector<Gap> gaps;
  // Missing bytes in at most so many pieces of a useful size.
  void cut(size_t pieces);
  // Everything is missing again. False where the file cannot be emptied (errno).
  bool restart();

  // Writes the note. Errors: Failed with the system's reason.
  Status note() const;
  // Makes it the target, whole. Errors as before.
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
