// Numbers as they are written, exactly: the bounds of JSON schemas.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "grammar/grammar.h"

namespace gimbal {

struct Decimal {
  bool negative = false;  // not of 0
  std::string whole;      // digits before the point, without zeros in front; empty: 0
  std::string part;       // digits behind it, without zeros at the end

  static Decimal of(std::string_view json_number);  // as JSON writes it; of exponents up to 10,000
  bool zero() const { return whole.empty() && part.empty(); }
  bool whole_number() const { return part.empty(); }
};
int compare(const Decimal&, const Decimal&);  // -1, 0, 1

struct NumberBounds {
  std::optional<Decimal> low, high;
  bool low_excluded = false, high_excluded = false;

  void at_least(const Decimal& bound, bool excluded);
  void at_most(const Decimal& bound, bool excluded);
  bool bounded() const { return low || high; }
  bool hold(const Decimal&) const;
  bool disjoint(const NumberBounds&) const;
};

// The numbers within bounds, without exponents. An open side ends after 18 digits, or more where the bound
// has as many. `whole`: only those without a point; else there are digits behind it as the bounds have them,
// and as many as make 15 in all.
Grammar::Id bounded_numbers(Grammar&, const NumberBounds&, bool whole);

}  // namespace gimbal
