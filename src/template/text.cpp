#include "template/text.h"

#include <algorithm>

namespace gimbal::tmpl {

void Text::append(std::string_view part, bool is_foreign) {
  if (part.empty()) return;
  const auto begin = uint32_t(bytes.size());
  bytes += part;
  if (!is_foreign) return;
  if (!foreign.empty() && foreign.back().end == begin) foreign.back().end = uint32_t(bytes.size());
  else foreign.push_back({begin, uint32_t(bytes.size())});
}

void Text::append(const Text& part, size_t begin, size_t end) {
  const std::string_view from = part.bytes;
  size_t at = begin;
  auto first = std::partition_point(part.foreign.begin(), part.foreign.end(),
                                    [&](const Span& s) { return s.end <= begin; });
  for (; first != part.foreign.end() && first->begin < end; ++first) {
    const Span s = *first;
    if (s.begin > at) append(from.substr(at, s.begin - at), false), at = s.begin;
    const size_t stop = s.end < end ? s.end : end;
    append(from.substr(at, stop - at), true);
    at = stop;
  }
  if (at < end) append(from.substr(at, end - at), false);
}

Text Text::with(std::string other) const {
  Text out;
  out.append(other, !foreign.empty());
  out.markup = markup;
  return out;
}

uint32_t code_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? uint32_t(uint8_t(text[at + i])) : 0u; };
  const uint32_t first = byte(0);
  if (first < 0x80) return first;
  if (first < 0xe0) return (first & 0x1f) << 6 | (byte(1) & 0x3f);
  if (first < 0xf0) return (first & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
  return (first & 7) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
}

void append_code(std::string& to, uint32_t c) {
  if (c < 0x80) {
    to += char(c);
  } else if (c < 0x800) {
    to += char(0xc0 | c >> 6);
    to += char(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    to += char(0xe0 | c >> 12);
    to += char(0x80 | (c >> 6 & 0x3f));
    to += char(0x80 | (c & 0x3f));
  } else {
    to += char(0xf0 | c >> 18);
    to += char(0x80 | (c >> 12 & 0x3f));
    to += char(0x80 | (c >> 6 & 0x3f));
    to += char(0x80 | (c & 0x3f));
  }
}

size_t count_codes(std::string_view text) {
  size_t n = 0;
  for (char c : text) n += (uint8_t(c) & 0xc0) != 0x80;
  return n;
}

size_t byte_of(std::string_view text, size_t index) {
  size_t at = 0;
  while (index-- > 0 && at < text.size()) at = next_code(text, at);
  return at;
}

bool is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool is_printable(uint32_t c) {
  if (c == ' ') return true;
  if (c < 0x20 || (c >= 0x7f && c < 0xa1) || c == 0xad || is_space(c)) return false;
  if ((c >= 0x600 && c <= 0x605) || c == 0x61c || c == 0x6dd || c == 0x70f || c == 0x180e) return false;
  if ((c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f))
    return false;
  return !(c >= 0xd800 && c <= 0xf8ff) && c != 0xfeff && !(c >= 0xfff0 && c <= 0xfffb) &&
         (c & 0xfffe) != 0xfffe && c < 0xe0000;
}

bool is_digit(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 0x660 && c <= 0x669) || (c >= 0x966 && c <= 0x96f) ||
         (c >= 0xff10 && c <= 0xff19);
}

bool is_letter(uint32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (c < 0xc0) return c == 0xaa || c == 0xb5 || c == 0xba;
  if (c == 0xd7 || c == 0xf7 || is_space(c) || is_digit(c) || !is_printable(c)) return false;
  if (c >= 0x300 && c < 0x370) return false;                                     // combining marks
  if ((c >= 0x2000 && c < 0x2c00) || (c >= 0x2e00 && c < 0x3005)) return false;  // punctuation, signs
  if ((c >= 0x3008 && c < 0x3021) || c == 0x30fb || (c >= 0xfe00 && c < 0xfe70)) return false;
  if ((c >= 0xff00 && c < 0xff21) || (c >= 0x1f000 && c < 0x1fb00)) return false;  // wide signs, pictures
  return true;
}

uint32_t upper_of(uint32_t c) {
  if (c >= 'a' && c <= 'z') return c - 32;
  if (c < 0xb5) return c;
  if (c == 0xb5) return 0x39c;
  if ((c >= 0xe0 && c <= 0xfe && c != 0xf7) || (c >= 0x3b1 && c <= 0x3cb && c != 0x3c2)) return c - 32;
  if (c == 0xff) return 0x178;
  if (c == 0x131) return 'I';
  if (c == 0x3c2) return 0x3a3;
  if (c == 0x3ac) return 0x386;
  if (c >= 0x3ad && c <= 0x3af) return c - 37;
  if (c == 0x3cc) return 0x38c;
  if (c == 0x3cd || c == 0x3ce) return c - 63;
  if (c >= 0x430 && c <= 0x44f) return c - 32;
  if (c >= 0x450 && c <= 0x45f) return c - 80;
  if (c >= 0x561 && c <= 0x586) return c - 48;
  if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e)) return c & 1 ? c : c - 1;
  if ((c >= 0x100 && c <= 0x137 && c != 0x138) || (c >= 0x14a && c <= 0x177) || (c >= 0x460 && c <= 0x481) ||
      (c >= 0x48a && c <= 0x4bf) || (c >= 0x4d0 && c <= 0x52f) || (c >= 0x1e00 && c <= 0x1e95) ||
      (c >= 0x1ea0 && c <= 0x1eff))
    return c & 1 ? c - 1 : c;
  return c;
}

uint32_t lower_of(uint32_t c) {
  if (c >= 'A' && c <= 'Z') return c + 32;
  if (c < 0xc0) return c;
  if ((c >= 0xc0 && c <= 0xde && c != 0xd7) || (c >= 0x391 && c <= 0x3ab && c != 0x3a2)) return c + 32;
  if (c == 0x178) return 0xff;
  if (c == 0x386) return 0x3ac;
  if (c >= 0x388 && c <= 0x38a) return c + 37;
  if (c == 0x38c) return 0x3cc;
  if (c == 0x38e || c == 0x38f) return c + 63;
  if (c >= 0x410 && c <= 0x42f) return c + 32;
  if (c >= 0x400 && c <= 0x40f) return c + 80;
  if (c >= 0x531 && c <= 0x556) return c + 48;
  const uint32_t next = c + 1;
  return upper_of(next) == c ? next : c;
}

std::string upper(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); at = next_code(text, at)) {
    const uint32_t c = code_at(text, at);
    if (c == 0xdf) out += "SS";
    else append_code(out, upper_of(c));
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); at = next_code(text, at)) {
    const uint32_t c = code_at(text, at);
    if (c == 0x130) out += "i\xcc\x87";
    else append_code(out, lower_of(c));
  }
  return out;
}

Span stripped(std::string_view text, const std::string_view* set, bool left, bool right) {
  std::vector<uint32_t> codes;  // of the set, sorted
  for (size_t at = 0; set && at < set->size(); at = next_code(*set, at)) codes.push_back(code_at(*set, at));
  std::sort(codes.begin(), codes.end());
  const auto goes = [&](size_t at) {
    const uint32_t code = code_at(text, at);
    return set ? std::binary_search(codes.begin(), codes.end(), code) : is_space(code);
  };
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    const size_t next = next_code(text, begin);
    if (!goes(begin)) break;
    begin = next;
  }
  while (right && begin < end) {
    size_t last = end - 1;
    while (last > begin && (uint8_t(text[last]) & 0xc0) == 0x80) --last;
    if (!goes(last)) break;
    end = last;
  }
  return {uint32_t(begin), uint32_t(end)};
}

}  // namespace gimbal::tmpl
