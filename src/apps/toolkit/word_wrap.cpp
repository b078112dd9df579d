#include "apps/toolkit/word_wrap.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace gimbal {
namespace {

struct Range {
  uint32_t first, last;
};
// From Unicode 15's EastAsianWidth.txt (W and F), in blocks.
constexpr Range kWide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},  {0x3400, 0x4dbf},
                           {0x4e00, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},  {0xf900, 0xfaff},
                           {0xfe30, 0xfe6f},   {0xff01, 0xff60},   {0xffe0, 0xffe6},  {0x1f300, 0x1f64f},
                           {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
// Marks of general category Mn, and what joins emoji.
constexpr Range kJoining[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},
                              {0x64b, 0x65f},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},
                              {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0x1f3fb, 0x1f3ff}};

template <size_t n>
bool in(const Range (&ranges)[n], uint32_t c) {
  return std::any_of(ranges, ranges + n, [c](const Range& r) { return c >= r.first && c <= r.last; });
}

// Of one whole character.
uint32_t code_point(std::string_view c) {
  if (c.size() == 1) return uint8_t(c[0]);
  uint32_t value = uint8_t(c[0]) & (0xff >> (c.size() + 1));
  for (char next : c.substr(1)) value = value << 6 | (uint8_t(next) & 0x3f);
  return value;
}

int columns_of_character(std::string_view c) {
  const uint32_t value = code_point(c);
  return in(kJoining, value) ? 0 : in(kWide, value) ? 2 : 1;
}

}  // namespace

int terminal_columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int columns_of(std::string_view text) {
  int sum = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    sum += step.kind == Utf8Step::Whole ? columns_of_character(text.substr(at, step.bytes)) : 1;
    at += step.bytes;
  }
  return sum;
}

void WordWrap::end_word(std::string& out) {
  if (word_.empty()) return;
  const int width = columns_of(word_), with_spaces = columns_of(spaces_) + width;
  if (!code_ && column_ > 0 && column_ + with_spaces > columns_) {
    out += "\n" + word_;
    column_ = width;
  } else {
    out += spaces_ + word_;
    column_ += with_spaces;
  }
  if (word_.starts_with("```") && column_ == with_spaces) code_ = !code_;
  spaces_.clear(), word_.clear();
}

std::string WordWrap::push(std::string_view piece) {
  if (columns_ <= 0) return std::string(piece);
  const std::string text = std::exchange(cut_, "") + std::string(piece);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    const std::string_view c = std::string_view(text).substr(at, step.bytes);
    at += step.bytes;
    if (step.kind == Utf8Step::Cut) {
      cut_ = c;
    } else if (c == "\n") {
      end_word(out);
      out += spaces_ + "\n";
      spaces_.clear(), column_ = 0;
    } else if (c == " " || c == "\t") {
      end_word(out);
      spaces_ += c;
    } else {
      // A line may end before and behind a wide character; marks belong to the character before.
      if (step.kind == Utf8Step::Whole && columns_of_character(c) == 2) end_word(out);
      else if (!word_.empty() && columns_of_character(c) == 1 && columns_of(word_) == 2 &&
               columns_of_character(std::string_view(word_).substr(0, utf8_step(word_, 0).bytes)) == 2)
        end_word(out);
      word_ += c;
    }
  }
  return out;
}

std::string WordWrap::finish() {
  std::string out;
  word_ += std::exchange(cut_, "");
  end_word(out);
  return out + std::exchange(spaces_, "");
}

}  // namespace gimbal
