// The bytes of one file of tensors while it is parsed and loaded. The header is read piece by piece into
// memory, which views point into; weights are read directly to their destination. Models are not mapped: so a
// file that shrinks meanwhile is an error, not a signal.
#pragma once
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/file.h"
#include "base/guarded_mapping.h"
#include "files/file_arithmetic.h"

namespace gimbal {

// A file on the network instead of in the file system.
class RemoteFile {
 public:
  virtual ~RemoteFile() = default;
  virtual uint64_t size() const = 0;
  // Fills [to, to + bytes) from `offset` on, all of which the file has. Errors: whatever the way there has.
  virtual Status read(uint64_t offset, void* to, size_t bytes) const = 0;
};
class RemoteFolder {
 public:
  virtual ~RemoteFolder() = default;
  // `path`: as open_gguf was given it, or that of a part beside it. Errors: NotFound, and as read().
  virtual Result<std::unique_ptr<RemoteFile>> open(const std::string& path) const = 0;
};

class FileBytes {
 public:
  // `from`: nullptr for the file system. Errors: those of InputFile::open or of `from`; OutOfMemory when
  // there is no address space for the header.
  static Result<FileBytes> open(const std::string& path, const RemoteFolder* from = nullptr);
  // Bytes in memory, which must outlive the object.
  explicit FileBytes(Bytes whole) : head_(whole.data()), loaded_(whole.size()), size_(whole.size()) {}
  FileBytes(FileBytes&&) noexcept;
  ~FileBytes();

  uint64_t size() const { return size_; }
  int64_t modified() const { return file_.modified(); }  // as InputFile; 0 of bytes in memory
  Bytes loaded() const { return {head_, loaded_}; }      // so far, by head()
  bool is(const std::string& path) const { return !remote_ && file_.is(path); }

  // The first `end` <= size() bytes, in memory from now on; their address stays. Errors: those of read();
  // OutOfMemory; Unsupported when a header is larger than kMaxHeader.
  Result<Bytes> head(uint64_t end);
  // Any bytes. Errors: those of InputFile::read or RemoteFile::read.
  Status read(uint64_t offset, void* to, size_t bytes) const;
  // Maps the file. Errors: those of GuardedMapping::map; Unsupported for bytes that are no local file.
  Result<GuardedMapping> map() const;

  static constexpr uint64_t kMaxHeader = kMaxHeaderBytes;

 private:
  FileBytes() = default;
  Status fill(uint64_t offset, void* to, size_t bytes) const;

  InputFile file_;
  std::unique_ptr<RemoteFile> remote_;  // in its place
  const std::byte* head_ = nullptr;
  uint64_t loaded_ = 0, reserved_ = 0, size_ = 0;  // reserved_: address space behind head_; 0: not ours
};

}  // namespace gimbal
