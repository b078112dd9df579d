// A model's metadata: typed keys and values. Strings, keys and arrays are views into memory of their source,
// for a file its reader (files/model_source.h). Accessors never fail: they return optional values.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"

namespace gimbal {

// The types of values, with their ids in GGUF files.
enum class MetadataType : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };
const char* name_of(MetadataType);
// Bytes of one encoded value; 0 for strings and arrays.
uint64_t encoded_bytes(MetadataType);

// An array stays encoded as in a GGUF file and is decoded on demand: vocabularies have 10^5 strings.
struct MetadataArray {
  MetadataType type = MetadataType::U8;  // of the elements; never Array
  uint64_t count = 0;
  Bytes data;  // `count` encoded elements, already walked once and found whole

  std::vector<std::string_view> strings() const;  // empty unless type is String; views into `data`
  std::vector<int64_t> integers() const;          // any integer or bool type; empty for others
  std::vector<float> floats() const;              // F32 or F64; empty for others
  MetadataArray first(uint64_t n) const;          // its first `n` elements, or all
};

using MetadataValue = std::variant<uint64_t, int64_t, double, bool, std::string_view, MetadataArray>;
struct MetadataEntry {
  MetadataType type;
  MetadataValue value;  // unsigned types as uint64_t, signed as int64_t, floats as double
};

class Metadata {
 public:
  Metadata() = default;
  // `source` names the file in errors. It is escaped (base/text.h).
  explicit Metadata(std::string source) : source_(std::move(source)) {}

  const std::string& source() const { return source_; }
  // False when the key is there already.
  bool add(std::string_view key, MetadataEntry);
  // Adds or replaces the entry.
  void put(std::string_view key, MetadataEntry);

  // Typed lookups. nullopt: the key is absent or of another kind, or the number does not fit.
  const MetadataEntry* find(std::string_view key) const;
  std::optional<uint64_t> unsigned_integer(std::string_view key) const;  // any integer type >= 0
  std::optional<double> number(std::string_view key) const;              // any numeric type
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  const MetadataArray* array(std::string_view key) const;

  // Pairs of key and entry, sorted by key.
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  size_t size() const { return entries_.size(); }
  bool contains(std::string_view key) const { return entries_.count(key) != 0; }
  // In the order of the file.
  const std::vector<std::string_view>& keys() const { return keys_; }

 private:
  std::string source_;
  std::map<std::string_view, MetadataEntry> entries_;
  std::vector<std::string_view> keys_;
};

}  // namespace gimbal
