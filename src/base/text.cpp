#include "base/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/format.h"

namespace gimbal {
namespace {

// The number of continuation bytes after a lead byte, and the range of the first of them, which excludes
// overlong forms, surrogates and numbers above U+10FFFF.
struct Lead {
  uint8_t more, low, high;
};

Lead lead_of(uint8_t byte) {
  if (byte >= 0xc2 && byte <= 0xdf) return {1, 0x80, 0xbf};
  if (byte == 0xe0) return {2, 0xa0, 0xbf};
  if (byte == 0xed) return {2, 0x80, 0x9f};
  if (byte >= 0xe1 && byte <= 0xef) return {2, 0x80, 0xbf};
  if (byte == 0xf0) return {3, 0x90, 0xbf};
  if (byte >= 0xf1 && byte <= 0xf3) return {3, 0x80, 0xbf};
  if (byte == 0xf4) return {3, 0x80, 0x8f};
  return {0, 0, 0};
}

// Edit distance of two words; swapping neighbouring characters counts as one edit (optimal string alignment
// distance).
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); i++) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); j++) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); i++)
    for (size_t j = 1; j <= b.size(); j++) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

Utf8Step utf8_step(std::string_view text, size_t at) {
  const uint8_t first = uint8_t(text[at]);
  if (first < 0x80) return {1, Utf8Step::Whole};
  const Lead lead = lead_of(first);
  if (!lead.more) return {1, Utf8Step::Broken};
  for (uint32_t i = 1; i <= lead.more; ++i) {
    if (at + i == text.size()) return {i, Utf8Step::Cut};
    const uint8_t byte = uint8_t(text[at + i]);
    const bool fits = i == 1 ? byte >= lead.low && byte <= lead.high : (byte & 0xc0) == 0x80;
    if (!fits) return {i, Utf8Step::Broken};
  }
  return {lead.more + 1u, Utf8Step::Whole};
}

bool is_utf8(std::string_view s) {
  for (size_t at = 0; at < s.size();) {
    const Utf8Step c = utf8_step(s, at);
    if (c.kind != Utf8Step::Whole) return false;
    at += c.bytes;
  }
  return true;
}

bool acts_on_terminals(std::string_view c) {
  uint32_t code = uint8_t(c[0]);
  if (c.size() == 2) code = (code & 0x1f) << 6 | (uint8_t(c[1]) & 0x3f);
  if (c.size() == 3) code = (code & 0xf) << 12 | (uint8_t(c[1]) & 0x3fu) << 6 | (uint8_t(c[2]) & 0x3fu);
  if (c.size() > 3) return false;
  return code < 0x20 || (code >= 0x7f && code < 0xa0) ||         // C0, DEL, C1
         code == 0x61c || (code >= 0x200b && code <= 0x200f) ||  // zero width, direction marks
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x2069) || code == 0xfeff;
}

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Step c = utf8_step(text, at);
    const std::string_view character = text.substr(at, c.bytes);
    if (c.kind == Utf8Step::Whole && !acts_on_terminals(character)) out += character;
    else
      for (char byte : character) out += format("\\x{:02x}", uint8_t(byte));
    at += c.bytes;
  }
  return out;
}

std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& known) {
  std::optional<std::string> best;
  if (word.size() > 64) return best;  // too long for a typing error
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& k : known) {
    size_t d = distance(word, k);
    if (d < least) least = d, best = k;
  }
  if (!best)
    for (const std::string& k : known)
      if (word.size() >= 3 && k.rfind(word, 0) == 0) return k;
  return best;
}

std::string quoted(std::string_view text) {
  constexpr size_t kMaxBytes = 80;
  size_t at = 0;
  while (at < text.size()) {
    const size_t next = at + utf8_step(text, at).bytes;
    if (next > kMaxBytes) break;
    at = next;
  }
  return format("'{}{}'", escaped(text.substr(0, at)), at == text.size() ? "" : "...");
}

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
