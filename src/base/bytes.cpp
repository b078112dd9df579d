#include "base/bytes.h"

#include <charconv>

#include "base/format.h"

namespace gimbal {

std::string human_bytes(uint64_t n) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double v = double(n);
  int unit = 0;
  while (v >= 999.5 && unit < 6) v /= 1000, unit++;
  if (unit == 0) return format("{} B", n);
  return format("{:.{}f} {}", v, v < 9.995 ? 2 : v < 99.95 ? 1 : 0, kUnits[unit]);
}

std::optional<uint64_t> bytes_named(std::string_view text) {
  constexpr std::string_view kPrefixes = "KMGTP";
  const bool named = text.ends_with('B') && text.size() > 1;
  if (named) text.remove_suffix(1);
  const bool binary = named && text.ends_with('i');
  if (binary) text.remove_suffix(1);
  double unit = 1;
  const size_t prefix =
      text.empty() ? kPrefixes.npos : kPrefixes.find(text.back() == 'k' ? 'K' : text.back());
  if (prefix != kPrefixes.npos) {
    for (size_t i = 0; i <= prefix; i++) unit *= binary ? 1024 : 1000;
    text.remove_suffix(1);
  } else if (binary) {
    return std::nullopt;
  }
  if (text.ends_with(' ')) text.remove_suffix(1);
  double n = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), n, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !(n * unit >= 1) || n * unit > 0x1p62)
    return std::nullopt;
  return uint64_t(n * unit);
}

}  // namespace gimbal
