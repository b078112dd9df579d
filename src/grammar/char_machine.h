// Deterministic finite automata over characters: patterns, formats, and their combinations with limits and
// intersections. Every state can reach an accepted text, so an empty language has no states.
#pragma once
#include <string_view>
#include <vector>

#include "grammar/grammar.h"

namespace gimbal {

class CharMachine {
 public:
  struct Arc {
    CharRange chars;
    uint32_t to;
  };
  struct State {
    std::vector<Arc> arcs;  // sorted, without overlaps
    bool accepts = false;
  };
  static constexpr size_t kMaxStates = 20'000;

  // An ECMA-262 regular expression as in JSON schemas: matches anywhere unless anchored by ^ and $. No
  // look-around, back references or \p. Errors: Usage, with the position; more than kMaxStates.
  static Result<CharMachine> pattern(std::string_view regex);
  // Every text except these.
  static CharMachine except(std::span<const std::string> texts);
  // The texts of an expression without rules.
  static Result<CharMachine> of(const Grammar&, Grammar::Id);
  static CharMachine of(std::vector<State>);  // the first is the start

  // Errors: Usage beyond kMaxStates.
  Result<CharMachine> both(const CharMachine& other) const;
  Result<CharMachine> of_length(uint32_t min, uint32_t max) const;
  CharMachine complement() const;  // every other text

  bool matches(std::string_view utf8) const;
  bool empty() const { return states_.empty(); }
  const std::vector<State>& states() const { return states_; }  // the first is the start

 private:
  friend class Determinizer;
  void trim();
  std::vector<State> states_;
};

// The regular expression as an expression of `grammar`, without anchors, and with arbitrary text where it is
// not anchored.
Result<Grammar::Id> parse_regex(std::string_view regex, Grammar& grammar);

}  // namespace gimbal
