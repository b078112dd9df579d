// The bytes of one GGUF file while it is parsed and loaded. The header, which views point into, is read into
// memory of its own as the parser asks for it; weights are read where they are wanted. Nothing is mapped: a
// file that shrinks meanwhile is an error, where touching a mapping would be a signal.
#pragma once
#include "base/bytes.h"
#include "base/file.h"

namespace gimbal {

class GgufBytes {
 public:
  // Errors: those of InputFile::open; OutOfMemory when there is no address space for the header.
  static Result<GgufBytes> open(const std::string& path);
  // Bytes in memory, which must outlive the object.
  explicit GgufBytes(Bytes whole) : head_(whole.data()), loaded_(whole.size()), size_(whole.size()) {}
  GgufBytes(GgufBytes&&) noexcept;
  ~GgufBytes();

  uint64_t size() const { return size_; }
  int64_t modified() const { return file_.modified(); }  // as InputFile; 0 of bytes in memory
  Bytes loaded() const { return {head_, loaded_}; }      // so far, by head()
  bool is(const std::string& path) const { return file_.is(path); }

  // The first `end` <= size() bytes, in memory from now on; their address stays. Errors: those of
  // InputFile::read; OutOfMemory; Unsupported when a header is larger than kMaxHeader.
  Result<Bytes> head(uint64_t end);
  // Any bytes. Errors: those of InputFile::read.
  Status read(uint64_t offset, void* to, size_t bytes) const;

  static constexpr uint64_t kMaxHeader = uint64_t(1) << 30;

 private:
  GgufBytes() = default;

  InputFile file_;
  const std::byte* head_ = nullptr;
  uint64_t loaded_ = 0, reserved_ = 0, size_ = 0;  // reserved_: address space behind head_; 0: not ours
};

}  // namespace gimbal
