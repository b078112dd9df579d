// A file of packed weights, in a device's own layout. The next start maps the file instead of reading and
// packing weights, and all processes that use it share its pages. Its contents are hostile until checked.
// Format, little-endian: PackedHead, a PackedWeight for each weight, and from the next page on their bytes.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/guarded_mapping.h"
#include "files/tensor_reader.h"

namespace gimbal {

struct PackedHead {
  char magic[16];
  uint32_t version, weights;
  char layout[16];         // the backend whose layout it is, and zeros
  uint64_t bytes;          // of the whole file
  FileIdentity source;     // of the model's file
  uint64_t table, before;  // hashes: of the following table; of the fields before this one
};
static_assert(sizeof(PackedHead) == 88);

inline constexpr std::string_view kPackedMagic{"gimbal-packed\n\0", 16};
static_assert(kPackedMagic.size() == sizeof PackedHead::magic);
inline constexpr uint32_t kPackedVersion = 1;     // of the format; other changes show in the hashes
inline constexpr uint32_t kPackedMost = 1 << 20;  // weights in a file
inline constexpr uint64_t kPackedPage = 4096;

struct PackedWeight {
  uint64_t what;           // a hash of its identity: runtime/packed_weights.h
  uint64_t offset, bytes;  // in the file; a multiple of 64
  uint64_t hash;           // of the bytes
};

class PackedFile {
 public:
  // Maps the file and checks everything except the bytes of the weights. Errors, with the reason
  // `packed-unusable` and the path as `value`: not a packed file, another version, damaged, truncated, made
  // from another state of the model file, or writable by others than its owner. Those of InputFile::open.
  static Result<std::shared_ptr<const PackedFile>> open(const std::string& path, const FileIdentity& source);
  // The first part of open(): the table of a file of `file_bytes` bytes that begins with `head`. Errors:
  // Malformed.
  static Result<std::vector<PackedWeight>> parse(Bytes head, uint64_t file_bytes);

  const std::string& path() const { return path_; }
  std::string_view layout() const { return layout_; }
  Bytes bytes() const { return mapping_.bytes(); }  // of the whole file; aligned to a page
  const PackedWeight* find(uint64_t what) const;
  const InputFile& file() const { return file_; }
  const InputFile::State& state() const { return state_; }  // when it was opened

  // Compares all bytes with the hashes. Errors: as open().
  Status check_weights() const;
  // Checks that the file was not modified or truncated since open(). Errors: as open().
  Status unchanged() const;

 private:
  Error unusable(const std::string& why) const;

  std::string path_, layout_;
  InputFile file_;
  InputFile::State state_{};
  GuardedMapping mapping_;
  std::vector<PackedWeight> weights_;  // by rising `what`
};

}  // namespace gimbal
