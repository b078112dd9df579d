// Taking apart and putting together the file names of split models.
#include "files/gguf_split.h"

#include "base/format.h"

namespace gimbal {
namespace {

bool take_number(std::string_view& from_end, uint32_t& out) {
  constexpr size_t kDigits = 5;
  if (from_end.size() < kDigits) return false;
  out = 0;
  for (char c : from_end.substr(from_end.size() - kDigits)) {
    if (c < '0' || c > '9') return false;
    out = out * 10 + uint32_t(c - '0');
  }
  from_end.remove_suffix(kDigits);
  return true;
}

bool take_suffix(std::string_view& s, std::string_view suffix) {
  if (!s.ends_with(suffix)) return false;
  s.remove_suffix(suffix.size());
  return true;
}

}  // namespace

std::optional<SplitName> split_name(std::string_view path) {
  SplitName name;
  if (!take_suffix(path, ".gguf") || !take_number(path, name.count) || !take_suffix(path, "-of-") ||
      !take_number(path, name.number) || !take_suffix(path, "-"))
    return std::nullopt;
  if (name.number == 0 || name.number > name.count) return std::nullopt;
  name.stem = path;
  return name;
}

std::string SplitName::path(uint32_t part_number) const {
  return format("{}-{:05}-of-{:05}.gguf", stem, part_number, count);
}

}  // namespace gimbal
