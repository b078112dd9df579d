// Builds GGUF files for tests, right ones and wrong ones. It shares nothing with the reader (only the
// format's numbers, written out again here), so that a mistake in one shows against the other.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal::test {

// Value type ids as in the format document.
enum GgufId : uint32_t {
  kU8 = 0,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

// The bytes of a number, least significant first.
template <class T>
std::string le(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
inline std::string gguf_string(std::string_view text) {
  return le<uint64_t>(text.size()) + std::string(text);
}

class GgufWriter {
 public:
  // Anything that is set here is written as it is, right or wrong.
  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t alignment = 32;  // used for padding; write the key general.alignment yourself
  std::optional<uint64_t> entry_count, tensor_count;

  // A metadata entry with its value already encoded.
  GgufWriter& raw(std::string_view key, uint32_t type, std::string_view value) {
    metadata_ += gguf_string(key) + le(type) + std::string(value);
    entries_++;
    return *this;
  }
  template <class T>
  GgufWriter& scalar(std::string_view key, uint32_t type, T value) {
    return raw(key, type, le(value));
  }
  GgufWriter& u32(std::string_view key, uint32_t value) { return scalar(key, kU32, value); }
  GgufWriter& f32(std::string_view key, float value) { return scalar(key, kF32, value); }
  GgufWriter& boolean(std::string_view key, bool value) { return scalar(key, kBool, uint8_t(value)); }
  GgufWriter& string(std::string_view key, std::string_view value) {
    return raw(key, kString, gguf_string(value));
  }
  template <class T>
  GgufWriter& array(std::string_view key, uint32_t type, const std::vector<T>& values) {
    std::string encoded = le(type) + le<uint64_t>(values.size());
    for (const T& v : values) encoded += le(v);
    return raw(key, kArray, encoded);
  }
  GgufWriter& strings(std::string_view key, const std::vector<std::string>& values) {
    std::string encoded = le<uint32_t>(kString) + le<uint64_t>(values.size());
    for (const std::string& v : values) encoded += gguf_string(v);
    return raw(key, kArray, encoded);
  }

  // A tensor behind those before it; `type` is the format's id.
  GgufWriter& tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                     std::string_view data) {
    tensor_at(name, dims, type, data_.size());
    data_ += data;
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  GgufWriter& floats(std::string_view name, const std::vector<uint64_t>& dims,
                     const std::vector<float>& values) {
    std::string data;
    for (float v : values) data += le(v);
    return tensor(name, dims, 0, data);
  }
  // Only the entry in the table, with any offset; add the bytes with data().
  GgufWriter& tensor_at(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                        uint64_t offset) {
    tensors_ += gguf_string(name) + le(uint32_t(dims.size()));
    for (uint64_t d : dims) tensors_ += le(d);
    tensors_ += le(type) + le(offset);
    tensor_entries_++;
    return *this;
  }
  GgufWriter& data(std::string_view bytes) {
    data_ += bytes;
    return *this;
  }

  // Where the parts of the file begin, so that tests can say which byte an error must name.
  static constexpr uint64_t kMetadataBegin = 24;
  uint64_t tensors_begin() const { return kMetadataBegin + metadata_.size(); }
  uint64_t data_begin() const {
    return (tensors_begin() + tensors_.size() + alignment - 1) / alignment * alignment;
  }

  std::string build() const {
    std::string file = magic + le(version) + le(tensor_count.value_or(tensor_entries_)) +
                       le(entry_count.value_or(entries_)) + metadata_ + tensors_;
    if (!data_.empty()) file.resize(data_begin());
    return file + data_;
  }

 private:
  std::string metadata_, tensors_, data_;
  uint64_t entries_ = 0, tensor_entries_ = 0;
};

}  // namespace gimbal::test
