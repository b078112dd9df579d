// Special tokens that are known by their text. Files often declare them as plain tokens, or name no
// end-of-turn id at all, so their text is the last resort.
#pragma once
#include <span>
#include <string_view>

namespace gimbal {

struct KnownToken {
  std::string_view text;
  bool stops;  // ends a generation; the others only mark a place in the text
};

std::span<const KnownToken> known_tokens();

}  // namespace gimbal
