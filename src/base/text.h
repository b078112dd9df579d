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

// 'text' for an error message: control characters and broken UTF-8 as \xNN, at most 80 bytes, then "...".
std::string quoted(std::string_view text);

// The word of `known` that is nearest to a mistyped one; nothing when none is near.
std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace gimbal
