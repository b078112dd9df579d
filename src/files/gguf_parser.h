// Parses one GGUF file into metadata and a table of tensors, or reports the error.
#pragma once
#include <string>
#include <string_view>

#include "base/text.h"
#include "files/gguf_cursor.h"
#include "files/metadata.h"
#include "files/tensor_table.h"

namespace gimbal {

// Reads one file, or one part of a split model. Memory is taken entry by entry as they are found whole, never
// by the counts that the file claims.
class GgufParser {
 public:
  // The bytes must outlive `into` and the metadata. `part` is the position of this file in a split model (0
  // for a single file). `choice`: as open_gguf.
  GgufParser(TensorTable& into, FileBytes& bytes, const std::string& file, uint32_t part,
             const TernaryChoice& choice)
      : tensors_(into), cursor_(bytes, file), part_(part), choice_(choice), metadata_(escaped(file)) {}

  // Adds the tensors to `into`. On failure `into` is left half-built, to be thrown away. Errors: Malformed;
  // Unsupported (byte order, version, nested array, tensor type).
  Status run();

  uint32_t version() const { return version_; }
  // The metadata of this file alone. Call after run() and bounded().
  Metadata take_metadata() { return std::move(metadata_); }

  // An integer of this file's metadata within 0..limit, `otherwise` when the key is absent.
  Result<uint64_t> bounded(std::string_view key, uint64_t limit, uint64_t otherwise);
  // Where in the file the value of a key begins, 0 when the key is absent.
  uint64_t value_offset(std::string_view key) const;

 private:
  [[nodiscard]] bool read_header(uint64_t& tensors, uint64_t& entries);
  [[nodiscard]] bool read_count(const char* field, uint64_t smallest, uint64_t& out);
  [[nodiscard]] bool read_entry();
  [[nodiscard]] bool read_value(MetadataType type, MetadataEntry& out);
  [[nodiscard]] bool read_array(MetadataArray& out);
  [[nodiscard]] bool check_bools(Bytes data, uint64_t at);
  [[nodiscard]] bool find_alignment();
  [[nodiscard]] bool read_tensor();
  [[nodiscard]] bool read_dims(StoredTensor& out);
  [[nodiscard]] bool read_type(StoredTensor& out);
  // Whether a tensor with the type id of mxfp4 is one of tl2: it lies in less room than mxfp4 takes, and in
  // all of it.
  bool is_tl2(const StoredTensor&, uint64_t room) const;
  [[nodiscard]] bool size_of(const StoredTensor&, uint64_t at, uint64_t& size);
  [[nodiscard]] bool place_tensors(size_t first);
  [[nodiscard]] bool check_overlaps(size_t first);
  uint64_t offset_field(const StoredTensor&) const;

  TensorTable& tensors_;
  GgufCursor cursor_;
  uint32_t part_;
  TernaryChoice choice_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;  // the format's default without general.alignment
  Metadata metadata_;
};

}  // namespace gimbal
