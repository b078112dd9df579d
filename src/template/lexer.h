// Splits a template's source into tokens: the text between tags, with the white-space rules of trim_blocks
// and lstrip_blocks applied, and the words inside tags.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gimbal::tmpl {

struct Lexeme {
  enum Kind : uint8_t {
    Data,
    BlockBegin,
    BlockEnd,
    PrintBegin,
    PrintEnd,
    Name,
    Str,
    Integer,
    Float,
    Sign,
    End
  } kind;
  std::string_view text;  // within the source; a Str includes its quotes
  int line;
  bool is(std::string_view sign) const { return kind == Sign && text == sign; }
  bool names(std::string_view word) const { return kind == Name && text == word; }
};

// Converts line ends to "\n" and removes one at the very end: the input of lex().
std::string normal_source(std::string_view source);

// The last token is End. Errors: Malformed, with the line.
Result<std::vector<Lexeme>> lex(std::string_view source);

// An error of a template: "chat template, line 3: ...".
Error template_error(Code code, int line, std::string_view what);

}  // namespace gimbal::tmpl
