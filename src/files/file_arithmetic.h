// The arithmetic of a file of tensors: positions, counts, sizes and places. Every number may come from a
// hostile file. Plain values only: a model checker reads this header (proofs/files.cpp).
#pragma once
#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace gimbal {

// ---- the header in memory (FileBytes::head)

inline constexpr uint64_t kMaxHeaderBytes = uint64_t(1) << 30;
inline constexpr uint64_t kHeaderPiece = uint64_t(1) << 20;  // at least so much of a header is read at once

// Address space for the header of a file of `size` bytes.
constexpr uint64_t reserved_for_header(uint64_t size) {
  return align_up(size < kMaxHeaderBytes ? size : kMaxHeaderBytes, kHeaderPiece);
}

struct HeaderGrowth {
  uint64_t accessible;  // bytes of the reserved address space that need memory
  uint64_t loaded;      // of these: bytes of the file
};
// The growth after which `end` bytes are in memory. `loaded` < `end` <= `size`, and `end` <= kMaxHeaderBytes;
// `loaded` is a multiple of kHeaderPiece.
constexpr HeaderGrowth header_growth(uint64_t loaded, uint64_t end, uint64_t size) {
  uint64_t more = end - loaded;
  if (more < kHeaderPiece) more = kHeaderPiece;
  if (more < loaded / 2) more = loaded / 2;
  const uint64_t upto = align_up(loaded + more, kHeaderPiece), reserved = reserved_for_header(size);
  const uint64_t accessible = upto < reserved ? upto : reserved;
  return {accessible, accessible < size ? accessible : size};
}

// ---- reading in order (GgufCursor)

// The position after `bytes` more; nullopt: past the end. `at` is at most `size`.
constexpr std::optional<uint64_t> position_after(uint64_t at, uint64_t bytes, uint64_t size) {
  if (bytes > size - at) return std::nullopt;
  return at + bytes;
}

// The largest possible number of entries of at least `smallest` bytes in the rest of the file.
constexpr uint64_t most_entries(uint64_t at, uint64_t size, uint64_t smallest) {
  return (size - at) / smallest;
}

// ---- tensors (GgufParser)

// Bytes of rows of `row` bytes with `tail` behind them. nullopt: these, or the number of values, are 2^63 or
// more. `dim`: four, all above 0.
inline std::optional<uint64_t> tensor_bytes(const int64_t* dim, uint64_t row, uint64_t tail) {
  constexpr uint64_t kMost = INT64_MAX;
  std::optional<uint64_t> values = uint64_t(dim[0]), bytes = row;
  for (int i = 1; i < 4; i++) {
    if (values) values = checked_mul(*values, uint64_t(dim[i]));
    if (bytes) bytes = checked_mul(*bytes, uint64_t(dim[i]));
  }
  if (bytes) bytes = checked_add(*bytes, tail);
  // Values are counted as well as bytes: a format of less than 8 bits would let them pass 2^63 alone.
  if (!values || !bytes || *values > kMost || *bytes > kMost) return std::nullopt;
  return bytes;
}

struct FileRange {
  uint64_t begin, end;
};
// The bytes of a tensor at `offset` behind `data`, where tensors begin. nullopt: they are not all in the
// file.
inline std::optional<FileRange> range_in_file(uint64_t data, uint64_t offset, uint64_t bytes, uint64_t size) {
  const std::optional<uint64_t> begin = checked_add(data, offset);
  if (!begin || *begin > size) return std::nullopt;
  const std::optional<uint64_t> end = position_after(*begin, bytes, size);
  if (!end) return std::nullopt;
  return FileRange{*begin, *end};
}

// Whether two ranges that begin in this order have a byte in common.
constexpr bool overlap(const FileRange& before, const FileRange& after) { return before.end > after.begin; }

}  // namespace gimbal
