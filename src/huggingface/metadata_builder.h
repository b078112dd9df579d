// Makes metadata with GGUF's keys and types, and keeps the memory that its views point into.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "files/metadata.h"

namespace gimbal {

class MetadataBuilder {
 public:
  // `source` names the folder in errors: escaped (base/text.h).
  explicit MetadataBuilder(std::string source)
      : metadata_(std::move(source)), texts_(std::make_shared<std::deque<std::string>>()) {}

  // Each replaces an earlier value of the key.
  void text(const std::string& key, std::string value) {
    put(key, {MetadataType::String, keep(std::move(value))});
  }
  void u32(const std::string& key, uint64_t v) { put(key, {MetadataType::U32, v}); }
  void f32(const std::string& key, double v) { put(key, {MetadataType::F32, double(float(v))}); }
  void flag(const std::string& key, bool v) { put(key, {MetadataType::Bool, v}); }
  void strings(const std::string& key, std::span<const std::string> values);
  template <class T>
  void numbers(const std::string& key, MetadataType type, std::span<const T> values) {
    const Bytes raw = std::as_bytes(values);
    array(key, type, values.size(), std::string(reinterpret_cast<const char*>(raw.data()), raw.size()));
  }

  const Metadata& metadata() const { return metadata_; }
  // The memory of all keys and values: it must live as long as copies of metadata().
  std::shared_ptr<const void> memory() const { return texts_; }

 private:
  std::string_view keep(std::string text) { return texts_->emplace_back(std::move(text)); }
  void put(const std::string& key, MetadataEntry entry) {
    metadata_.put(metadata_.contains(key) ? std::string_view(key) : keep(key), std::move(entry));
  }
  void array(const std::string& key, MetadataType type, uint64_t count, std::string encoded);

  Metadata metadata_;
  std::shared_ptr<std::deque<std::string>> texts_;
};

}  // namespace gimbal
