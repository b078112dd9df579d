// UTF-8 decoding, and escaping of untrusted text from files and requests before it is printed. All of gimbal
// uses this one decoder: RFC 3629, and for invalid bytes the "maximal subpart" practice of the Unicode
// standard (section 3.9, table 3-7).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal {

struct Utf8Step {
  enum Kind : uint8_t {
    Whole,   // a well-formed character
    Broken,  // invalid bytes, replaced by one U+FFFD
    Cut,     // a valid prefix of a character at the end of the text
  };
  uint32_t bytes;
  Kind kind;
};

// Decodes the step at text[at...]; `at` must be inside the text.
Utf8Step utf8_step(std::string_view text, size_t at);

// Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view);

// One whole character with an effect on a terminal: C0 and C1 controls, DEL, zero-width characters, and
// bidirectional controls, which can make one name look like another.
bool acts_on_terminals(std::string_view character);

// Escapes such characters (and newlines) and invalid
// UTF-8 as \xNN: for untrusted text within a line.
std::string escaped(std::string_view);

// Without these characters at both ends.
inline std::string_view trimmed(std::string_view s, std::string_view blanks = " \t\r\n") {
  s.remove_prefix(std::min(s.find_first_not_of(blanks), s.size()));
  return s.substr(0, s.find_last_not_of(blanks) + 1);
}

// 'text' for an error message: escaped, at most 80 bytes, then "...".
std::string quoted(std::string_view text);

// The word of `known` nearest to a misspelled one; nullopt if none is close.
std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& known);

// ---- Base64 (RFC 4648, section 4), with padding
std::string base64(std::string_view bytes);
// nullopt for a text that is none.
std::optional<std::string> base64_decoded(std::string_view text);

}  // namespace gimbal
