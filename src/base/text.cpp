#include "base/text.h"

#include <algorithm>

#include "base/format.h"

namespace gimbal {
namespace {

// How many continuation bytes a first byte asks for, and the range of the first of them, which is where
// overlong forms, surrogates and numbers above U+10FFFF are refused.
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

// How many edits of one character lie between two words; neighbours changing places count as one (optimal
// string alignment).
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

std::string quoted(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string out = "'";
  size_t at = 0;
  while (at < text.size() && at < kLongest) {
    const Utf8Step c = utf8_step(text, at);
    const auto first = static_cast<unsigned char>(text[at]);
    // U+0080..U+009F (C2 80..9F) are control characters too: terminals act on them.
    const bool control = first < 0x20 || first == 0x7f ||
                         (c.bytes == 2 && first == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0);
    if (c.kind != Utf8Step::Whole || control) {
      for (size_t i = 0; i < c.bytes; i++)
        out += format("\\x{:02x}", static_cast<unsigned char>(text[at + i]));
    } else {
      out += text.substr(at, c.bytes);
    }
    at += c.bytes;
  }
  out += at == text.size() ? "'" : "...'";
  return out;
}

std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& known) {
  std::optional<std::string> best;
  if (word.size() > 64) return best;  // nobody mistypes that much
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

}  // namespace gimbal
