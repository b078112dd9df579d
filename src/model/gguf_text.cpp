// UTF-8 checking and quoting for names that come out of a file.
#include "model/gguf_text.h"

#include <cstddef>

#include "base/format.h"

namespace gimbal {
namespace {

// Length of the well-formed character at the start of `s`, 0 if there is none.
size_t character_length(std::string_view s) {
  auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  unsigned lead = byte(0), second_low = 0x80, second_high = 0xbf;
  if (s.empty()) return 0;
  if (lead < 0x80) return 1;
  // The range of the second byte is what keeps overlong forms, surrogates and numbers above U+10FFFF out.
  size_t length = 0;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0) second_low = 0xa0;
    if (lead == 0xed) second_high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0) second_low = 0x90;
    if (lead == 0xf4) second_high = 0x8f;
  } else {
    return 0;
  }
  if (byte(1) < second_low || byte(1) > second_high) return 0;
  for (size_t i = 2; i < length; i++)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return length;
}

}  // namespace

bool is_utf8(std::string_view s) {
  while (!s.empty()) {
    size_t n = character_length(s);
    if (n == 0) return false;
    s.remove_prefix(n);
  }
  return true;
}

std::string quoted(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string out = "'";
  size_t shown = 0;
  while (!text.empty() && shown < kLongest) {
    size_t n = character_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    // U+0080..U+009F (C2 80..9F) are control characters too: terminals act on them.
    const bool control = first < 0x20 || first == 0x7f ||
                         (n == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0);
    if (n == 0 || control) {
      n = 1;
      out += format("\\x{:02x}", first);
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(n);
    shown += n;
  }
  out += text.empty() ? "'" : "...'";
  return out;
}

}  // namespace gimbal
