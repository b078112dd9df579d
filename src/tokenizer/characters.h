// Characters of UTF-8 as numbers, and back.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace gimbal {

// Of one well-formed character (base/text.h: Utf8Step::Whole).
inline uint32_t code_point(std::string_view character) {
  const auto byte = [&](size_t i) { return uint32_t(uint8_t(character[i])); };
  switch (character.size()) {
    case 1: return byte(0);
    case 2: return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
    case 3: return (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
  }
}

inline void append_character(uint32_t c, std::string& out) {
  if (c < 0x80) {
    out += char(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  out += char((more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0) | c >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += char(0x80 | (c >> (6 * i) & 0x3f));
}

// Unicode's White_Space.
inline bool is_white_space(uint32_t c) {
  return (c >= 0x9 && c <= 0xd) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

}  // namespace gimbal
