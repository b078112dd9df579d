#include "files/metadata.h"

#include <algorithm>

namespace gimbal {
namespace {

template <class T, class Out>
void append_all(Bytes data, uint64_t count, std::vector<Out>& out) {
  count = std::min<uint64_t>(count, data.size() / sizeof(T));
  out.reserve(count);
  for (uint64_t i = 0; i < count; i++) out.push_back(Out(read_le<T>(data.data() + i * sizeof(T))));
}

}  // namespace

const char* name_of(MetadataType type) {
  switch (type) {
    case MetadataType::U8: return "u8";
    case MetadataType::I8: return "i8";
    case MetadataType::U16: return "u16";
    case MetadataType::I16: return "i16";
    case MetadataType::U32: return "u32";
    case MetadataType::I32: return "i32";
    case MetadataType::F32: return "f32";
    case MetadataType::Bool: return "bool";
    case MetadataType::String: return "string";
    case MetadataType::Array: return "array";
    case MetadataType::U64: return "u64";
    case MetadataType::I64: return "i64";
    case MetadataType::F64: return "f64";
  }
  return "unknown";
}

uint64_t encoded_bytes(MetadataType type) {
  switch (type) {
    case MetadataType::U8:
    case MetadataType::I8:
    case MetadataType::Bool: return 1;
    case MetadataType::U16:
    case MetadataType::I16: return 2;
    case MetadataType::U32:
    case MetadataType::I32:
    case MetadataType::F32: return 4;
    case MetadataType::U64:
    case MetadataType::I64:
    case MetadataType::F64: return 8;
    case MetadataType::String:
    case MetadataType::Array: return 0;
  }
  return 0;
}

std::vector<std::string_view> MetadataArray::strings() const {
  std::vector<std::string_view> out;
  if (type != MetadataType::String) return out;
  out.reserve(std::min<uint64_t>(count, data.size() / sizeof(uint64_t)));
  // The parser has checked the array already; the bounds make this safe on its own.
  for (size_t at = 0; out.size() < count && data.size() - at >= sizeof(uint64_t);) {
    const auto length = read_le<uint64_t>(data.data() + at);
    at += sizeof(uint64_t);
    if (length > data.size() - at) break;
    out.emplace_back(reinterpret_cast<const char*>(data.data() + at), length);
    at += length;
  }
  return out;
}

std::vector<int64_t> MetadataArray::integers() const {
  std::vector<int64_t> out;
  switch (type) {
    case MetadataType::U8:
    case MetadataType::Bool: append_all<uint8_t>(data, count, out); break;
    case MetadataType::I8: append_all<int8_t>(data, count, out); break;
    case MetadataType::U16: append_all<uint16_t>(data, count, out); break;
    case MetadataType::I16: append_all<int16_t>(data, count, out); break;
    case MetadataType::U32: append_all<uint32_t>(data, count, out); break;
    case MetadataType::I32: append_all<int32_t>(data, count, out); break;
    case MetadataType::U64:  // above 2^63 these come out negative, as everywhere in two's complement
    case MetadataType::I64: append_all<int64_t>(data, count, out); break;
    case MetadataType::F32:
    case MetadataType::F64:
    case MetadataType::String:
    case MetadataType::Array: break;
  }
  return out;
}

std::vector<float> MetadataArray::floats() const {
  std::vector<float> out;
  if (type == MetadataType::F32) append_all<float>(data, count, out);
  if (type == MetadataType::F64) append_all<double>(data, count, out);
  return out;
}

MetadataArray MetadataArray::first(uint64_t n) const {
  MetadataArray some = *this;
  some.count = std::min(count, n);
  return some;
}

bool Metadata::add(std::string_view key, MetadataEntry entry) {
  const bool fresh = entries_.emplace(key, std::move(entry)).second;
  if (fresh) keys_.push_back(key);
  return fresh;
}

void Metadata::put(std::string_view key, MetadataEntry entry) {
  if (!add(key, entry)) entries_.find(key)->second = std::move(entry);
}

const MetadataEntry* Metadata::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

std::optional<uint64_t> Metadata::unsigned_integer(std::string_view key) const {
  const MetadataEntry* entry = find(key);
  if (!entry) return std::nullopt;
  if (const auto* value = std::get_if<uint64_t>(&entry->value)) return *value;
  if (const auto* value = std::get_if<int64_t>(&entry->value); value && *value >= 0) return uint64_t(*value);
  return std::nullopt;
}

std::optional<double> Metadata::number(std::string_view key) const {
  const MetadataEntry* entry = find(key);
  if (!entry) return std::nullopt;
  if (const auto* value = std::get_if<uint64_t>(&entry->value)) return double(*value);
  if (const auto* value = std::get_if<int64_t>(&entry->value)) return double(*value);
  if (const auto* value = std::get_if<double>(&entry->value)) return *value;
  return std::nullopt;
}

std::optional<bool> Metadata::boolean(std::string_view key) const {
  const MetadataEntry* entry = find(key);
  if (const auto* value = entry ? std::get_if<bool>(&entry->value) : nullptr) return *value;
  return std::nullopt;
}

std::optional<std::string_view> Metadata::string(std::string_view key) const {
  const MetadataEntry* entry = find(key);
  if (const auto* value = entry ? std::get_if<std::string_view>(&entry->value) : nullptr) return *value;
  return std::nullopt;
}

const MetadataArray* Metadata::array(std::string_view key) const {
  const MetadataEntry* entry = find(key);
  return entry ? std::get_if<MetadataArray>(&entry->value) : nullptr;
}

}  // namespace gimbal
