#include "base/base64.h"

#include <cstddef>
#include <cstdint>

namespace gimbal {

std::string base64(std::string_view bytes) {
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = bytes.size() - i;
    uint32_t three = 0;
    for (size_t k = 0; k < 3; k++) three = three << 8 | (k < n ? uint8_t(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; k++) out += k <= n ? kLetters[three >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::optional<std::string> base64_decoded(std::string_view text) {
  if (text.size() % 4) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t three = 0;
    size_t letters = 0;
    for (size_t k = 0; k < 4; k++) {
      const char c = text[i + k];
      const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                        : c >= 'a' && c <= 'z' ? c - 'a' + 26
                        : c >= '0' && c <= '9' ? c - '0' + 52
                        : c == '+'             ? 62
                        : c == '/'             ? 63
                                               : -1;
      if (value < 0 && !(c == '=' && k >= 2 && i + 4 == text.size())) return std::nullopt;
      if (value >= 0 && letters < k) return std::nullopt;  // a letter behind the padding
      letters += value >= 0;
      three = three << 6 | uint32_t(value < 0 ? 0 : value);
    }
    for (size_t k = 0; k + 1 < letters; k++) out += char(three >> (16 - 8 * k) & 255);
  }
  return out;
}

}  // namespace gimbal
