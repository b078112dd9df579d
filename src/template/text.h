// Text in a template: UTF-8 bytes that remember which of them came from the variables. So the tokenizer can
// distinguish the template's own text ("<|im_end|>") from a user's text, whatever operations the template
// applied to its strings.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal::tmpl {

struct Span {
  uint32_t begin, end;  // bytes
};

struct Text {
  std::string bytes;          // well-formed UTF-8
  std::vector<Span> foreign;  // parts from the variables: in order, not adjacent to each other
  bool markup = false;        // HTML-escaped, or marked |safe

  void append(std::string_view part, bool is_foreign);
  void append(const Text& part) { append(part, 0, part.bytes.size()); }
  void append(const Text& part, size_t begin, size_t end);
  // A text with other bytes: all foreign if any part of this text is.
  Text with(std::string other) const;
};

// ---- Unicode. Letters and cases are known for ASCII, Latin, Greek, Cyrillic and Armenian. In other
// scripts, characters have no case, and letters are not distinguished from symbols.

uint32_t code_at(std::string_view text, size_t at);  // at the first byte of a character
inline size_t next_code(std::string_view text, size_t at) {
  do ++at;
  while (at < text.size() && (uint8_t(text[at]) & 0xc0) == 0x80);
  return at;
}
void append_code(std::string& to, uint32_t code);
size_t count_codes(std::string_view text);
// The byte offset of character number `index`; the end if there are fewer.
size_t byte_of(std::string_view text, size_t index);

bool is_space(uint32_t code);  // as Python's str.isspace()
bool is_printable(uint32_t code);
bool is_digit(uint32_t code);
bool is_letter(uint32_t code);
uint32_t upper_of(uint32_t code);
uint32_t lower_of(uint32_t code);
std::string upper(std::string_view text);
std::string lower(std::string_view text);

// The range without leading or trailing characters of `set`; null: white space.
Span stripped(std::string_view text, const std::string_view* set, bool left, bool right);

// ---- search in time linear in both texts: a template chooses them, and std::string_view::find() compares up
// to the length of the needle at each position

// Byte offset of the first occurrence that begins at `from` or later; npos if there is none.
size_t find_text(std::string_view in, std::string_view what, size_t from = 0);
// Byte offset of the last occurrence; npos if there is none.
size_t rfind_text(std::string_view in, std::string_view what);

}  // namespace gimbal::tmpl
