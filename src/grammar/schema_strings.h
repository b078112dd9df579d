// Strings of JSON: how characters are written in them, and which texts a schema asks for.
#pragma once
#include <optional>
#include <vector>

#include "base/json_fwd.h"
#include "grammar/char_machine.h"

namespace gimbal {

// What schemas ask of a string's text.
struct StringRules {
  uint32_t min = 0, max = kUnbounded;  // characters
  std::vector<std::string> patterns;   // regular expressions; those of formats, too

  bool free() const { return min == 0 && max == kUnbounded && patterns.empty(); }
  // Of the patterns and limits. Errors: those of CharMachine.
  Result<CharMachine> machine() const;
};

// The pattern of a format; nullptr: it is not known.
const char* pattern_of_format(std::string_view format);
// "date, time, ...", for messages.
std::string known_formats();

// A character of a string as JSON writes it, in every spelling.
Grammar::Id any_string_char(Grammar&);
// A whole string, quotes included, each of whose characters is spelled in the shortest way.
Grammar::Id string_of(Grammar&, const CharMachine&);

}  // namespace gimbal
