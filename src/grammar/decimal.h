// Exact decimal numbers: the bounds of JSON schemas.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/char_machine.h"
#include "grammar/grammar.h"

namespace gimbal {

struct Decimal {
  bool negative = false;  // false for 0
  std::string whole;      // digits before the point, without leading zeros; empty: 0
  std::string part;       // digits after the point, without trailing zeros

  static Decimal of(std::string_view json_number);  // in JSON notation, with exponents up to 10,000
  bool zero() const { return whole.empty() && part.empty(); }
  bool whole_number() const { return part.empty(); }
};
int compare(const Decimal&, const Decimal&);  // -1, 0, 1
// Whether `value` is a multiple of `factor`, which is above 0. std::nullopt: the factor has too many digits.
std::optional<bool> multiple_of(const Decimal& value, const Decimal& factor);
// The digits of a factor as a whole number. std::nullopt: more than 18 digits.
std::optional<uint64_t> digits_of(const Decimal& factor);

struct NumberBounds {
  std::optional<Decimal> low, high;
  bool low_excluded = false, high_excluded = false;
  std::vector<Decimal> factors;  // the number is a multiple of each

  void at_least(const Decimal& bound, bool excluded);
  void at_most(const Decimal& bound, bool excluded);
  bool bounded() const { return low || high; }
  bool hold(const Decimal&) const;
  bool disjoint(const NumberBounds&) const;
};

// The numbers within bounds, without exponents. An unbounded side ends after 18 digits, or more if the other
// bound has as many. `whole`: only integers; else also fractions, with as many digits as the bounds have, and
// enough to make 15 digits in total. Factors only say how many digits are needed: see multiples_of().
Grammar::Id bounded_numbers(Grammar&, const NumberBounds&, bool whole);

// The decimal numbers that are multiples of a number, as an automaton over digits.

// Digits with a sign and a point, of which a text of a number is read: the automaton leaves to others that
// there is a digit at all, and which zeros may lead. At most as many digits after the point as `factor` has.
// Errors: Usage, a factor that needs too many states.
Result<CharMachine> multiples_of(const Decimal& factor);

}  // namespace gimbal
