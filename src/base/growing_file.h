// A large file that is written from its beginning to its end, and whose writing may be interrupted: it grows
// as NAME.part, and a later run that makes the same file continues there. NAME.part.log has the length and
// hash of each piece, so that damage is found. (A download fills in gaps: fetch/part_file.h.)
#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"

namespace gimbal {

class GrowingFile {
 public:
  static constexpr size_t kPiece = size_t(8) << 20;
  // What begin() found of an earlier run: nothing, the beginning of this file, that of another one, or bytes
  // that are not those of the log.
  enum class Found : uint8_t { Nothing, Same, Other, Damaged };

  // `target`: the file to make; if it is a symbolic link, the file behind it. Its folder must exist. `piece`:
  // bytes between two records. Errors: Failed with the system's reason, or if another process writes the
  // part.
  static Result<GrowingFile> open(const std::string& target, size_t piece = kPiece);
  GrowingFile(GrowingFile&&) noexcept;
  // Without commit() or drop() the part stays, with all bytes so far.
  ~GrowingFile();

  const std::string& path() const { return part_; }

  // Once, before write(): the first bytes of the file, which must tell its contents from those of other
  // files. Drops the bytes of a damaged part, or of another file. Errors: the system's.
  Result<Found> begin(const void* head, size_t bytes);
  uint64_t kept() const { return kept_; }  // bytes of an earlier run
  // Whether the part has the next bytes already, so that write() does not read them.
  bool holds(size_t bytes) const { return at_ + bytes <= kept_; }
  // The next bytes, from the first one on. Errors: the system's.
  Status write(const void* data, size_t bytes);
  // Waits until the disk has the file, and renames it over the target. Errors: the system's.
  Status commit();
  // Deletes the part.
  void drop();

 private:
  GrowingFile() = default;
  Result<Found> verify(std::string_view head);
  Status start_anew();
  Status flush();
  Error failed(const char* doing, const std::string& path) const;

  std::string target_, part_, log_;
  int fd_ = -1, log_fd_ = -1;
  size_t piece_ = kPiece;
  std::string held_;  // bytes that are not written yet
  uint64_t at_ = 0, kept_ = 0,
           written_ = 0;  // of the file: passed to write(), of an earlier run, in the part
  bool begun_ = false;    // until begin() succeeds, the part belongs to an earlier run
};

}  // namespace gimbal
