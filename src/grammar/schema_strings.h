// JSON strings: the spellings of characters, and the texts that a schema allows.
#pragma once
#include <optional>
#include <vector>

#include "base/json_fwd.h"
#include "grammar/char_machine.h"

namespace gimbal {

// A schema's constraints on strings.
struct StringRules {
  uint32_t min = 0, max = kUnbounded;  // characters
  std::vector<std::string> patterns;   // regular expressions, including those of formats

  bool free() const { return min == 0 && max == kUnbounded && patterns.empty(); }
  // Combines patterns and limits. Errors: those of CharMachine.
  Result<CharMachine> machine() const;
};

// The pattern of a format; nullptr if unknown.
const char* pattern_of_format(std::string_view format);
// "date, time, ...", for messages.
std::string known_formats();

// A character of a JSON string, in every spelling.
Grammar::Id any_string_char(Grammar&);
// A whole string including quotes, with every character in its shortest spelling.
Grammar::Id string_of(Grammar&, const CharMachine&);

}  // namespace gimbal
