// Writes GGUF files, version 3. Equal calls give equal bytes. Weights are requested piece by piece, so a file
// may be larger than memory.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "files/metadata.h"
#include "files/tensor_table.h"

namespace gimbal {

class GgufWriter {
 public:
  // ---- metadata, in the order of the calls. Keys are 1 to 65535 bytes of UTF-8, each one once.
  // "general.alignment" decides where tensors begin, 32 without it.
  GgufWriter& add(std::string_view key, const MetadataEntry&);
  GgufWriter& add(const Metadata&);  // all of it, in the order of its file
  GgufWriter& u32(std::string_view key, uint32_t v) { return add(key, {MetadataType::U32, uint64_t(v)}); }
  GgufWriter& i32(std::string_view key, int32_t v) { return add(key, {MetadataType::I32, int64_t(v)}); }
  GgufWriter& u64(std::string_view key, uint64_t v) { return add(key, {MetadataType::U64, v}); }
  GgufWriter& f32(std::string_view key, float v) { return add(key, {MetadataType::F32, double(v)}); }
  GgufWriter& boolean(std::string_view key, bool v) { return add(key, {MetadataType::Bool, v}); }
  GgufWriter& string(std::string_view key, std::string_view v) { return add(key, {MetadataType::String, v}); }
  GgufWriter& strings(std::string_view key, std::span<const std::string> values);
  // Of numbers with this type: array<int32_t>(key, MetadataType::I32, values).
  template <class T>
  GgufWriter& array(std::string_view key, MetadataType type, std::span<const T> values) {
    static_assert(std::is_arithmetic_v<T>);
    return add(key, {MetadataType::Array, MetadataArray{type, values.size(), std::as_bytes(values)}});
  }

  // ---- tensors, in the order of their data. Only the format, the dimensions and the name of `like` are
  // used; the name is copied. Gives the tensor's number, from 0.
  size_t tensor(const StoredTensor& like) { return tensor(like.name, like.type, {like.dim, like.rank}); }
  size_t tensor(std::string_view name, DType, std::span<const int64_t> dims);

  // Bytes [offset, offset + bytes) of a tensor, by its number.
  using Read = std::function<Status(size_t tensor, uint64_t offset, void* to, size_t bytes)>;
  using Sink = std::function<Status(const void* data, size_t bytes)>;
  // Passes the file to the sink, from its beginning to its end. Errors: Unsupported, before anything is
  // passed, for a format that GGUF files cannot have, rows that are not a whole number of blocks, a key or
  // name that is invalid or duplicate, or an alignment that is not a power of two of at least 8; those of
  // `read` and of the sink.
  Status write(const Read& read, const Sink& sink) const;
  // Into a file, whole or not at all. Errors: those above; the system's.
  Status write_file(const std::string& path, const Read& read) const;

 private:
  struct Tensor {
    std::string name;
    DType type;
    std::vector<int64_t> dims;
    uint64_t bytes;
  };
  void raw(const void* data, size_t bytes) { metadata_.append(static_cast<const char*>(data), bytes); }
  void refuse(std::string why);
  void check_name(const char* kind, std::string_view name);

  std::string metadata_;  // encoded
  std::vector<std::string> keys_;
  std::vector<Tensor> tensors_;
  uint64_t alignment_ = 32;
  std::optional<Error> error_;
};

// The parts of a model that is written in several files: their writers and their names.

// One writer for each part. With more than one, each has the keys that say so; `tensors`: of all parts
// together.
std::vector<GgufWriter> writers_of_parts(size_t parts, size_t tensors);

// `path` for one part, else NAME-00001-of-0000N.gguf of it and its siblings.
std::vector<std::string> paths_of_parts(const std::string& path, size_t parts);

}  // namespace gimbal
