// A grammar: rules over characters. Built from GBNF or a JSON
// schema, and compiled to an Automaton.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gimbal {

struct CharRange {  // code points, inclusive
  uint32_t low, high;
};
// Sorted, without overlaps, with adjacent ranges merged.
std::vector<CharRange> sorted(std::vector<CharRange>);
// All characters outside these sorted ranges.
std::vector<CharRange> complement(std::span<const CharRange>);
// The characters in both; each must be sorted.
std::vector<CharRange> intersection(std::span<const CharRange>, std::span<const CharRange>);

constexpr uint32_t kLastChar = 0x10ffff;
constexpr uint32_t kUnbounded = UINT32_MAX;  // repetitions

class Grammar {
 public:
  using Id = uint32_t;  // index of an expression or rule
  struct Expr {
    enum Kind : uint8_t { Text, Token, Chars, Sequence, Choice, Repeat, Rule } kind;
    // Text: bytes of texts(). Token: likewise, in GBNF notation: <name> or <[number]>. Chars: of ranges().
    // Sequence, Choice: of items(). Repeat: `begin` is the repeated expression. Rule: `begin` is its index.
    uint32_t begin, end;
    uint32_t min, max;  // Repeat
  };
  struct RuleText {
    std::string name;
    Id expr;
  };

  // Parses llama.cpp's published grammar format. Errors: Usage, with
  // line and column: a syntax error, a rule that is missing or defined
  // twice; more than 4 MiB of text, 1000 nested groups, or kMaxExprs.
  static Result<Grammar> gbnf(std::string_view text);
  // The same language in GBNF.
  std::string to_gbnf() const;

  // ---- construction: the first rule added is the root. A grammar with too many parts becomes empty().
  static constexpr size_t kMaxExprs = 1 << 20;
  Id text(std::string_view utf8);
  // One control token of the vocabulary, which no text can produce. Other tokens count as their text.
  Id token(uint32_t id);
  Id token(std::string_view name);  // in GBNF notation, <...>
  Id chars(std::span<const CharRange> ranges);
  Id chars(std::initializer_list<CharRange> ranges) {
    return chars(std::span(ranges.begin(), ranges.size()));
  }
  Id sequence(std::span<const Id> items) { return list(Expr::Sequence, items); }
  Id sequence(std::initializer_list<Id> items) { return sequence(std::span(items.begin(), items.size())); }
  Id choice(std::span<const Id> items) { return list(Expr::Choice, items); }
  Id choice(std::initializer_list<Id> items) { return choice(std::span(items.begin(), items.size())); }
  Id repeat(Id expr, uint32_t min, uint32_t max);
  Id optional(Id expr) { return repeat(expr, 0, 1); }
  Id nothing() { return sequence(std::span<const Id>()); }  // the empty text
  Id never() { return choice(std::span<const Id>()); }      // no text
  Id rule(Id number) { return add({Expr::Rule, number, 0, 0, 0}); }
  Id add_rule(std::string name);  // returns its index; matches nothing until it is defined
  Id include(const Grammar&);     // adds all its rules; returns an expression for its root
  void define(Id rule, Id expr) { rules_[rule].expr = expr; }
  bool too_large() const {
    return items_.size() + exprs_.size() + texts_.size() + ranges_.size() > kMaxExprs;
  }

  // Whether the root has any text at all; true where that takes too long to find out.
  bool has_text() const;

  const std::vector<RuleText>& rules() const { return rules_; }
  const Expr& operator[](Id expr) const { return exprs_[expr]; }
  size_t size() const { return exprs_.size(); }
  std::string_view text_of(const Expr& e) const {
    return std::string_view(texts_).substr(e.begin, e.end - e.begin);
  }
  std::span<const CharRange> ranges_of(const Expr& e) const {
    return std::span(ranges_).subspan(e.begin, e.end - e.begin);
  }
  std::span<const Id> items_of(const Expr& e) const {
    return std::span(items_).subspan(e.begin, e.end - e.begin);
  }

 private:
  Id add(Expr);
  Id list(Expr::Kind, std::span<const Id> items);
  bool has_text(Id expr, const std::vector<bool>& rules, size_t& work) const;

  std::vector<RuleText> rules_;
  std::vector<Expr> exprs_;
  std::vector<Id> items_;
  std::vector<CharRange> ranges_;
  std::string texts_;
};

// A code point as UTF-8; empty if invalid.
std::string utf8_of(uint32_t code_point);
// Removes and returns the first character of non-empty UTF-8 text.
uint32_t take_char(std::string_view& text);

// Converts JSON schemas to grammars: every text of the grammar is JSON that the schema allows, and the
// grammar is empty only if the schema allows nothing. docs/cli.md lists the supported keywords and the
// allowed texts that the grammar omits (other orders of keys, other spellings).

// Errors: Usage: invalid JSON, nested too deeply; with the location
// in the schema: an unsupported keyword, by name; infinite recursion;
// a `oneOf` with indistinguishable alternatives; too large.
Result<Grammar> json_schema_grammar(std::string_view schema);
// Any JSON object, as the "JSON mode" of APIs promises.
Grammar json_object_grammar();

}  // namespace gimbal
