#include "files/metadata_edits.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

template <class T>
std::optional<T> whole_text(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
std::optional<MetadataEntry> integer_of(MetadataType type, std::string_view text) {
  const auto value = whole_text<T>(text);
  if (!value) return std::nullopt;
  if constexpr (std::is_signed_v<T>) return MetadataEntry{type, int64_t(*value)};
  else return MetadataEntry{type, uint64_t(*value)};
}

// nullopt: the text is no value of this type.
std::optional<MetadataEntry> entry_of(MetadataType type, std::string_view text) {
  switch (type) {
    case MetadataType::U8: return integer_of<uint8_t>(type, text);
    case MetadataType::U16: return integer_of<uint16_t>(type, text);
    case MetadataType::U32: return integer_of<uint32_t>(type, text);
    case MetadataType::U64: return integer_of<uint64_t>(type, text);
    case MetadataType::I8: return integer_of<int8_t>(type, text);
    case MetadataType::I16: return integer_of<int16_t>(type, text);
    case MetadataType::I32: return integer_of<int32_t>(type, text);
    case MetadataType::I64: return integer_of<int64_t>(type, text);
    case MetadataType::F32:
    case MetadataType::F64: {
      const auto value = whole_text<double>(text);
      if (!value || !std::isfinite(*value)) return std::nullopt;
      return MetadataEntry{type, *value};
    }
    case MetadataType::Bool:
      if (text != "true" && text != "false") return std::nullopt;
      return MetadataEntry{type, text == "true"};
    case MetadataType::String: return MetadataEntry{type, text};
    case MetadataType::Array: return std::nullopt;
  }
  return std::nullopt;
}

MetadataType type_of_new(std::string_view text) {
  if (text == "true" || text == "false") return MetadataType::Bool;
  if (whole_text<uint32_t>(text)) return MetadataType::U32;
  if (whole_text<int64_t>(text)) return MetadataType::I64;
  const auto number = whole_text<double>(text);
  return number && std::isfinite(*number) ? MetadataType::F32 : MetadataType::String;  // "nan" may be a name
}

}  // namespace

MetadataEdits::Edit& MetadataEdits::edit(std::string_view key) {
  for (Edit& e : edits_)
    if (e.key == key) return e;
  edits_.push_back({std::string(key), "", false, {}});
  return edits_.back();
}

Status MetadataEdits::set(const Metadata& file, std::string_view key_and_value) {
  const size_t equals = key_and_value.find('=');
  const std::string_view key = key_and_value.substr(0, equals);
  if (equals == key_and_value.npos || key.empty() || !is_utf8(key_and_value))
    return Error{Code::Usage, format("expected KEY=VALUE, got {}", quoted(key_and_value)), ""};
  const std::string_view text = key_and_value.substr(equals + 1);
  const MetadataEntry* present = file.find(key);
  const MetadataType type = present ? present->type : type_of_new(text);
  if (type == MetadataType::Array)
    return Error{Code::Usage, format("the key {} has an array, which cannot be set", quoted(key)), ""};
  Edit& e = edit(key);
  e.text = std::string(text), e.removed = false;
  const auto entry = entry_of(type, e.text);
  if (!entry)
    return Error{
        Code::Usage,
        format("{} is no value of {}, which has the type {}", quoted(text), quoted(key), name_of(type)), ""};
  e.entry = *entry;
  return Done{};
}

Status MetadataEdits::remove(const Metadata& file, std::string_view key) {
  if (!file.find(key))
    return Error{Code::Usage, format("{} has no key {}", file.source(), quoted(key)),
                 "`info --json` lists them"};
  edit(key).removed = true;
  return Done{};
}

std::vector<std::pair<std::string_view, MetadataEntry>> MetadataEdits::applied(const Metadata& file) const {
  std::vector<std::pair<std::string_view, MetadataEntry>> all;
  for (std::string_view key : file.keys()) {
    const Edit* edited = nullptr;
    for (const Edit& e : edits_)
      if (e.key == key) edited = &e;
    if (!edited) all.emplace_back(key, *file.find(key));
    else if (!edited->removed) all.emplace_back(key, edited->entry);
  }
  for (const Edit& e : edits_)
    if (!e.removed && !file.find(e.key)) all.emplace_back(e.key, e.entry);
  return all;
}

}  // namespace gimbal
