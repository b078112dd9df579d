// Memory-mapped files, random-access reads, and whole-file reads and writes with errors that explain the
// failure.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace gimbal {

// A file mapped read-only. Move-only; unmaps when destroyed. An empty file maps to an empty span. Use only
// for files that no process writes: reading pages of a truncated file raises SIGBUS instead of an error.
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

// A file for random-access reads from any thread. If the file changes or shrinks meanwhile, read() returns an
// error. Move-only.
class InputFile {
 public:
  InputFile() = default;  // assign to it later
  InputFile(InputFile&&) noexcept;
  InputFile& operator=(InputFile&&) noexcept;
  ~InputFile();
  // Errors: as MappedFile::open.
  static Result<InputFile> open(const std::string& path);
  // Takes over a descriptor that another process opened. `name`: for errors. Errors: Failed if it is no
  // regular file.
  static Result<InputFile> adopt(int descriptor, const std::string& name);

  uint64_t size() const { return size_; }         // in bytes, when opened
  int64_t modified() const { return modified_; }  // nanoseconds since 1970, when opened
  // The file's current state. Errors: Failed with the system's reason.
  struct State {
    uint64_t device, inode, size;
    int64_t modified, changed;  // nanoseconds since 1970: of the contents (mtime), of anything (ctime)
    uint32_t owner, mode;
  };
  Result<State> state() const;
  // Of any file, folder or link with this name.
  static Result<State> state_of_name(const std::string& path);
  int descriptor() const { return fd_; }  // for mmap
  // Fills [to, to + bytes) from `offset`. Errors: Malformed if the file is shorter than that by now, with the
  // expected and found sizes; Failed with the system's reason.
  Status read(uint64_t offset, void* to, size_t bytes) const;
  // Whether `path` refers to this file, possibly through a link.
  bool is(const std::string& path) const;

 private:
  int fd_ = -1;
  std::string path_;
  uint64_t size_ = 0;
  int64_t modified_ = 0;
};

// Reads a whole file to its end, regardless of the reported size (files in /proc report 0). Errors: as
// MappedFile::open; Usage if the file is larger than `max_bytes`.
constexpr uint64_t kMaxFileBytes = uint64_t(1) << 30;
Result<std::string> read_file(const std::string& path, uint64_t max_bytes = kMaxFileBytes);
// For small system files that may be missing: all lines without their line ends, or the first line. Empty if
// the file does not exist.
std::vector<std::string> lines_of(const std::string& path);
std::string first_line(const std::string& path);
// Replaces the file's contents. Errors: Failed with the system's reason.
Status write_file(const std::string& path, std::string_view contents);
// A file written aside and renamed over its target on commit(). Move-only. Without commit() nothing remains,
// even if the process is killed, where the file system supports unnamed files; elsewhere the draft is a file
// named after the target and the process.
class DraftFile {
 public:
  // `path`: the file to replace or create. If it is a symbolic link, its target is replaced. The folder must
  // exist. `mode`: of the file, regardless of the umask; 0: that of the replaced file, or 0644 less the
  // umask. Errors: Failed with the system's reason.
  static Result<DraftFile> create(const std::string& path, uint32_t mode = 0);
  // Takes over the descriptor of a draft that another process made, and will commit.
  static DraftFile adopt(int descriptor);
  DraftFile(DraftFile&&) noexcept;
  ~DraftFile();

  // Large files are written in aligned pieces of 8 MB. Some file systems then store them in large pages (ext4
  // on Linux 6.18 does), which GuardedMapping maps as such.
  Status write(const void* data, size_t bytes);
  // Replaces bytes that were written before.
  Status rewrite(uint64_t offset, const void* data, size_t bytes);
  Status flush();  // hands all data written so far to the system
  Status sync();   // the same, and waits until the disk has it
  Status commit();
  int descriptor() const { return fd_; }  // for a process that writes in place of this one

 private:
  DraftFile() = default;
  int fd_ = -1;
  std::string held_;           // the incomplete last piece
  std::string target_, name_;  // name_: the draft's, if it has one
};

// Atomic write_file(): concurrent readers see the old or the new contents, and the last of several writers
// wins. Creates missing parent folders.
Status replace_file(const std::string& path, std::string_view contents);

}  // namespace gimbal
