// Files as read-only memory, files read in pieces, and whole-file reads and writes that explain their
// failures.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace gimbal {

// A file mapped read-only. Move-only; unmaps when destroyed. An empty file maps to an empty span. Only for
// files that nobody writes to: touching what a file has lost is a signal, not an error.
class MappedFile {
 public:
  // Errors: NotFound, Failed (not a regular file, no permission, mmap refused), each with the system's
  // reason.
  static Result<MappedFile> open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) noexcept;
  ~MappedFile();

  Bytes bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// A file that is read in pieces, from any thread. What happens to the file meanwhile is an error of read().
// Move-only.
class InputFile {
 public:
  InputFile() = default;  // to be assigned to
  InputFile(InputFile&&) noexcept;
  InputFile& operator=(InputFile&&) noexcept;
  ~InputFile();
  // Errors: as MappedFile::open.
  static Result<InputFile> open(const std::string& path);

  uint64_t size() const { return size_; }         // in bytes, when it was opened
  int64_t modified() const { return modified_; }  // nanoseconds since 1970, when it was opened
  // What the file is now. Errors: Failed with the system's reason.
  struct State {
    uint64_t device, inode, size;
    int64_t modified, changed;  // nanoseconds since 1970: its bytes; whatever of it
    uint32_t owner, mode;
  };
  Result<State> state() const;
  int descriptor() const { return fd_; }  // for who maps the file
  // Fills [to, to + bytes) from `offset` on. Errors: Malformed when the file has become shorter than that,
  // with the bytes expected and found; Failed with the system's reason.
  Status read(uint64_t offset, void* to, size_t bytes) const;
  // Whether the path names this file, under whatever name.
  bool is(const std::string& path) const;

 private:
  int fd_ = -1;
  std::string path_;
  uint64_t size_ = 0;
  int64_t modified_ = 0;
};

// Whole file as bytes in a string, read to its end whatever size the system tells (files of /proc tell 0).
// Errors: as MappedFile::open; Usage when there are more than `max_bytes`.
constexpr uint64_t kMaxFileBytes = uint64_t(1) << 30;
Result<std::string> read_file(const std::string& path, uint64_t max_bytes = kMaxFileBytes);
// For the system's small files, of which any may be missing: the lines without their ends, the first one;
// empty where there is no such file.
std::vector<std::string> lines_of(const std::string& path);
std::string first_line(const std::string& path);
// Replaces the file's contents. Errors: Failed with the system's reason.
Status write_file(const std::string& path, std::string_view contents);
// Contents that take the place of a file when they are complete, and not before. Move-only; what was not
// committed leaves nothing behind, also when the program is killed (where the file system can have a file
// without a name; else a file named after the target and the process).
class DraftFile {
 public:
  // `path`: what will be replaced or made; a link keeps what it points to as the target. Its folder must
  // exist. Errors: Failed with the system's reason.
  static Result<DraftFile> create(const std::string& path);
  DraftFile(DraftFile&&) noexcept;
  ~DraftFile();

  // The system gets large files in aligned pieces of 8 MB. Some file systems then keep them in large pages
  // (ext4 on Linux 6.18 does), which are mapped as such (GuardedMapping).
  Status write(const void* data, size_t bytes);
  Status sync();  // what was written so far lies on the disk, and not only in memory
  Status commit();

 private:
  DraftFile() = default;
  Status write_held();
  int fd_ = -1;
  std::string held_;           // of the piece that is not whole
  std::string target_, name_;  // name_: of the draft, where it has one
};

// The same, whole or not at all: who reads it meanwhile sees the old contents or the new, and of two that
// write at once the last one wins. Makes the folders above it.
Status replace_file(const std::string& path, std::string_view contents);

}  // namespace gimbal
