// JSON strings: the spellings of characters, and the texts that a schema allows.
#pragma once
#include <optional>
#include <vector>

#include "base/json_fwd.h"
#include "grammar/char_machine.h"

namespace gimbal {

// A schema's constraints on strings.
struct StringRules {
  uint32_t min = 0, max = kUnbounded;                    // characters
  std::vector<std::string> patterns;                     // regular expressions, including those of formats
  std::vector<std::string> other_patterns, other_texts;  // that it does not match, and that it is not

  bool plain() const { return patterns.empty() && other_patterns.empty() && other_texts.empty(); }
  // Combines patterns and limits. Errors: those of CharMachine.
  Result<CharMachine> machine() const;
};

// The pattern of a format; nullptr if unknown: then the format is a note.
const char* pattern_of_format(std::string_view format);

// A character of a JSON string, in every spelling.
Grammar::Id any_string_char(Grammar&);
// A whole string including quotes, with every character in its shortest spelling.
Grammar::Id string_of(Grammar&, const CharMachine&);
// The same without quotes.
Grammar::Id text_of(Grammar&, const CharMachine&);

}  // namespace gimbal
