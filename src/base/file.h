// Files as read-only memory, and whole-file reads and writes that explain their failures.
#pragma once
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace gimbal {

// A file mapped read-only. Move-only; unmaps when destroyed. An empty file maps to an empty span.
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
  // Brings in the pages of a range that will be read whole, at once instead of a few at each first touch.
  void fetch(Bytes range) const;
  // Lets the kernel drop the pages of a range that will not be read again; contents stay readable.
  void release(Bytes range) const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Whole file as bytes in a string. Errors as MappedFile::open.
Result<std::string> read_file(const std::string& path);
// Replaces the file's contents. Errors: Failed with the system's reason.
Status write_file(const std::string& path, std::string_view contents);
// The same, whole or not at all: who reads it meanwhile sees the old contents or the new, and of two that
// write at once the last one wins. Makes the folders above it.
Status replace_file(const std::string& path, std::string_view contents);

}  // namespace gimbal
