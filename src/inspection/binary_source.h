// Bounded reads of a binary file. The file is read and not mapped: a file that shrinks meanwhile gives an
// error, and only the blocks in the cache take memory, however large the file is.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"

namespace gimbal {

// Not thread-safe.
class BinarySource {
 public:
  // Errors: as InputFile::open.
  static Result<BinarySource> open(const std::string& path);
  explicit BinarySource(Bytes memory) : memory_(memory), size_(memory.size()) {}

  uint64_t size() const { return size_; }
  // Copies [at, at + bytes) to `to`, through the cache. False, and zeros, if it is not inside the file or
  // cannot be read.
  bool read(uint64_t at, void* to, size_t bytes);
  // The same for long ranges that are read once.
  bool read_uncached(uint64_t at, void* to, size_t bytes);
  // The first failure of the system: the file shrank, or its disk failed.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  BinarySource() = default;
  const std::byte* block(uint64_t number);

  struct Slot {
    uint64_t number = UINT64_MAX;
    std::unique_ptr<std::byte[]> bytes;
  };

  InputFile file_;
  Bytes memory_;
  uint64_t size_ = 0;
  std::vector<Slot> slots_;  // empty for memory
  std::optional<Error> failure_;
};

// A part of a source: a slice of a fat file, or a member of an archive. Offsets count from its beginning.
// Numbers outside are read as 0; check with has() first.
class ByteView {
 public:
  ByteView() = default;
  explicit ByteView(BinarySource& s) : source_(&s), size_(s.size()) {}

  uint64_t size() const { return size_; }
  bool has(uint64_t at, uint64_t bytes) const { return at <= size_ && bytes <= size_ - at; }
  // Whether a table of `count` entries of `each` bytes is inside.
  bool has_table(uint64_t at, uint64_t count, uint64_t each) const;
  ByteView part(uint64_t at, uint64_t bytes) const;  // shortened to the size of this view
  ByteView swapped(bool big_endian) const;

  uint8_t u8(uint64_t at) const { return uint8_t(number(at, 1)); }
  uint16_t u16(uint64_t at) const { return uint16_t(number(at, 2)); }
  uint32_t u32(uint64_t at) const { return uint32_t(number(at, 4)); }
  uint64_t u64(uint64_t at) const { return number(at, 8); }
  // The text that ends with a NUL, or with the view, at most kLongestText bytes.
  static constexpr size_t kLongestText = 16384;
  std::string text(uint64_t at) const;
  // A field of fixed width, without the NULs at its end.
  std::string field(uint64_t at, size_t width) const;
  bool starts_with(uint64_t at, std::string_view) const;
  bool copy(uint64_t at, void* to, size_t bytes) const;           // through the cache
  bool copy_uncached(uint64_t at, void* to, size_t bytes) const;  // see BinarySource

 private:
  uint64_t number(uint64_t at, size_t bytes) const;

  BinarySource* source_ = nullptr;
  uint64_t base_ = 0, size_ = 0;
  bool big_endian_ = false;
};

}  // namespace gimbal
