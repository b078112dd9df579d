// Sets of texts as finite automata over characters, deterministic: patterns, formats, and what is made of
// them by limits and intersections. Every state leads to an accepted text, so nothing is left where none is.
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
    std::vector<Arc> arcs;  // sorted, without overlap
    bool accepts = false;
  };
  static constexpr size_t kMaxStates = 20'000;

  // A regular expression of ECMA-262, as JSON schemas have it: found anywhere unless ^ and $ hold it. Without
  // looking around, references back, and \p. Errors: Usage, with the place in it; more than kMaxStates.
  static Result<CharMachine> pattern(std::string_view regex);
  // Every text but these.
  static CharMachine except(std::span<const std::string> texts);

  // Errors: Usage for more than kMaxStates.
  Result<CharMachine> both(const CharMachine& other) const;
  Result<CharMachine> of_length(uint32_t min, uint32_t max) const;

  bool matches(std::string_view utf8) const;
  bool empty() const { return states_.empty(); }
  const std::vector<State>& states() const { return states_; }  // the first: at the beginning

 private:
  friend class Determinizer;
  void trim();
  std::vector<State> states_;
};

// The same regular expression as an expression of `grammar`, with ^ and $ at its ends taken off and what may
// stand around it added.
Result<Grammar::Id> parse_regex(std::string_view regex, Grammar& grammar);

}  // namespace gimbal
