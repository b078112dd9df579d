// UTF-8, and text from files and requests made harmless before it is printed. One decoder for all of gimbal:
// RFC 3629, and the "maximal subpart" practice of the Unicode standard (section 3.9, table 3-7) for broken
// bytes.
#pragma once
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
    Broken,  // bytes that no continuation can make a character: one U+FFFD stands for all of them
    Cut,     // the beginning of a character, where the text ends
  };
  uint32_t bytes;
  Kind kind;
};

// Looks at text[at...]; `at` must be inside the text.
Utf8Step utf8_step(std::string_view text, size_t at);

// Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view);

// One whole character that a terminal does not just show: C0 and C1 controls, DEL, characters of no width and
// those that change the direction of writing, with which a name can look like another one.
bool acts_on_terminals(std::string_view character);

// Such characters, newlines too, and broken UTF-8 as \xNN: a text from a file or a path within a line.
std::string escaped(std::string_view);

// 'text' for an error message: escaped, at most 80 bytes, then "...".
std::string quoted(std::string_view text);

// The word of `known` that is nearest to a mistyped one; nothing when none is near.
std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace gimbal
