// Reading and walking the double array. Every index is checked: the data are from a file.
#include "tokenizer/charsmap.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"

namespace gimbal {
namespace {

constexpr char kKey[] = "tokenizer.ggml.precompiled_charsmap";

// A unit of the array, by bits: 0-7 the byte that leads to it, 8 whether a value follows, 9 whether the
// offset counts in 256s, 10-30 the offset of its children, 31 whether it is a value itself.
uint32_t label_of(uint32_t unit) { return unit & 0x800000ff; }
bool has_value(uint32_t unit) { return unit >> 8 & 1; }
uint32_t offset_of(uint32_t unit) { return unit >> 10 << (unit >> 6 & 8); }
uint32_t value_of(uint32_t unit) { return unit & 0x7fffffff; }

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view data) {
  Charsmap map;
  uint32_t size = 0;
  if (data.empty()) return map;
  const auto malformed = [](const std::string& problem) {
    return Error{
        Code::Malformed, "the map of characters (precompiled_charsmap): " + problem,
        "The file's vocabulary is damaged or was written by a broken converter; get the model again."};
  };
  if (data.size() < sizeof size) return malformed(format("{} bytes are too few", data.size()));
  std::memcpy(&size, data.data(), sizeof size);
  if (size % 4 || size > data.size() - sizeof size)
    return malformed(format("its array of {} bytes does not fit into {}", size, data.size()));
  map.units_.resize(size / 4);
  if (size)
    std::memcpy(map.units_.data(), data.data() + sizeof size,
                size);  // an empty vector has no address to copy to
  map.replacements_.assign(data.substr(sizeof size + size));
  return map;
}

Result<Charsmap> Charsmap::read(const Metadata& metadata) {
  if (!metadata.find(kKey)) return Charsmap();
  const MetadataArray* array = metadata.array(kKey);
  if (!array || (array->type != MetadataType::U8 && array->type != MetadataType::I8))
    return Error{
        Code::Malformed, format("{}: {}: expected an array of bytes", metadata.source(), kKey),
        "The file's vocabulary is damaged or was written by a broken converter; get the model again."};
  auto map = parse({reinterpret_cast<const char*>(array->data.data()), array->data.size()});
  if (map) return map;
  Error e = map.error();
  e.message = format("{}: {}", metadata.source(), e.message);
  return e;
}

Charsmap::Match Charsmap::longest(std::string_view text) const {
  Match match;
  if (units_.empty()) return match;
  size_t at = offset_of(units_[0]);
  for (size_t i = 0; i < text.size() && text[i]; ++i) {
    at ^= uint8_t(text[i]);
    if (at >= units_.size()) break;
    const uint32_t unit = units_[at];
    if (label_of(unit) != uint8_t(text[i])) break;
    at ^= offset_of(unit);
    if (at >= units_.size()) break;
    if (!has_value(unit)) continue;
    const size_t begin = value_of(units_[at]);
    const size_t end = begin < replacements_.size() ? replacements_.find('\0', begin) : std::string::npos;
    if (end == std::string::npos) break;
    match = {i + 1, std::string_view(replacements_).substr(begin, end - begin)};
  }
  return match;
}

}  // namespace gimbal
