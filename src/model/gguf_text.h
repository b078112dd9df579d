// Names out of a GGUF file are somebody else's bytes: checked before they become keys, and made harmless
// before they are printed in an error.
#pragma once
#include <string>
#include <string_view>

namespace gimbal {

// Well-formed UTF-8 as in RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view);

// 'text' for an error message: control characters and broken UTF-8 as \xNN, at most 80 bytes, then "...".
std::string quoted(std::string_view text);

}  // namespace gimbal
