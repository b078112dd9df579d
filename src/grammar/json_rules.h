// Grammar rules shared by all JSON grammars, each created on first use.
#pragma once
#include <optional>

#include "grammar/grammar.h"

namespace gimbal {

class JsonRules {
 public:
  using Id = Grammar::Id;
  explicit JsonRules(Grammar& grammar) : g_(grammar) {}

  Id space();  // between tokens: nothing, a space, or a newline with indentation
  Id string_char();
  Id string() { return quoted(g_.repeat(string_char(), 0, kUnbounded)); }
  Id quoted(Id chars) { return g_.sequence({g_.text("\""), chars, g_.text("\"")}); }
  Id number(bool whole);
  Id value();
  // `member`: a key with its value; `item`: an array element.
  Id object_of(Id member) { return bracketed("{", member, 0, kUnbounded, "}"); }
  Id array_of(Id item, uint32_t min, uint32_t max) { return bracketed("[", item, min, max, "]"); }
  Id member(Id key, Id value) { return g_.sequence({key, g_.text(":"), space(), value}); }
  Id any_object() { return object_of(member(string(), value())); }
  Id any_array() { return array_of(value(), 0, kUnbounded); }
  Id comma() { return g_.sequence({g_.text(","), space()}); }

 private:
  Id bracketed(const char* open, Id item, uint32_t min, uint32_t max, const char* close);

  Grammar& g_;
  std::optional<uint32_t> space_, char_, value_, numbers_[2];  // rules
};

}  // namespace gimbal
