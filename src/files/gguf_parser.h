// Turns the bytes of one GGUF file into metadata and a table of tensors, or into the error that says why not.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "files/gguf.h"
#include "files/gguf_cursor.h"

namespace gimbal {

struct SplitName;

// Reads one file, or one part of a split model, into a Gguf that is being built. Memory is taken entry by
// entry as they are found whole, never by the counts that the file claims.
class GgufParser {
 public:
  // The bytes must outlive `into`. `part` is the position of this file in a split model (0 for a single
  // file).
  GgufParser(Gguf& into, GgufBytes& bytes, const std::string& file, uint32_t part)
      : gguf_(into), cursor_(bytes, file), part_(part) {}

  // Adds the tensors to `into`, and the version for part 0. On failure `into` is left half-built, to be
  // thrown away. Errors: Malformed; Unsupported (byte order, version, nested array, tensor type).
  Status run();

  // The metadata of this file alone, to be asked for after run() and bounded().
  std::map<std::string_view, GgufEntry> take_metadata() { return std::move(metadata_); }

  // An integer of this file's metadata within 0..limit, `otherwise` when the key is absent.
  Result<uint64_t> bounded(std::string_view key, uint64_t limit, uint64_t otherwise);
  // Where in the file the value of a key begins, 0 when the key is absent.
  uint64_t value_offset(std::string_view key) const;

  // Opens part number `part` (0 is the first) of a split model and adds its tensors. `from`: as Gguf::open.
  // Errors: as run(), NotFound, Failed.
  static Status add_part(Gguf&, const SplitName&, uint32_t part, const RemoteFolder* from);

 private:
  [[nodiscard]] bool read_header(uint64_t& tensors, uint64_t& entries);
  [[nodiscard]] bool read_count(const char* field, uint64_t smallest, uint64_t& out);
  [[nodiscard]] bool read_entry();
  [[nodiscard]] bool read_value(GgufType type, GgufEntry& out);
  [[nodiscard]] bool read_array(GgufArray& out);
  [[nodiscard]] bool check_bools(Bytes data, uint64_t at);
  [[nodiscard]] bool find_alignment();
  [[nodiscard]] bool read_tensor();
  [[nodiscard]] bool read_dims(GgufTensor& out);
  [[nodiscard]] bool read_type(GgufTensor& out);
  // Whether a tensor with the type id of mxfp4 is one of tl2: it lies in less room than mxfp4 takes, and in
  // all of it.
  bool is_tl2(const GgufTensor&, uint64_t room) const;
  [[nodiscard]] bool size_of(const GgufTensor&, uint64_t at, uint64_t& size);
  [[nodiscard]] bool place_tensors(size_t first);
  [[nodiscard]] bool check_overlaps(size_t first);
  uint64_t offset_field(const GgufTensor&) const;

  Gguf& gguf_;
  GgufCursor cursor_;
  uint32_t part_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;  // what the format says when general.alignment is absent
  std::map<std::string_view, GgufEntry> metadata_;
};

}  // namespace gimbal
