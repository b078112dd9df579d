// Where one UTF-8 character ends, and what to call the bytes that are none: RFC 3629 and the "maximal
// subpart" practice of the Unicode standard (section 3.9, table 3-7).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

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

}  // namespace gimbal
