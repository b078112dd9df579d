#include "grammar/json_rules.h"

#include "grammar/schema_strings.h"

namespace gimbal {

// Bounded, so that texts of a bounded schema are finite.
Grammar::Id JsonRules::space() {
  if (!space_) {
    space_ = g_.add_rule("space");
    const Id indent = g_.choice({g_.repeat(g_.text(" "), 0, 20), g_.repeat(g_.text("\t"), 1, 8)});
    g_.define(*space_, g_.choice({g_.nothing(), g_.text(" "), g_.sequence({g_.text("\n"), indent})}));
  }
  return g_.rule(*space_);
}

Grammar::Id JsonRules::string_char() {
  if (!char_) {
    char_ = g_.add_rule("char");
    g_.define(*char_, any_string_char(g_));
  }
  return g_.rule(*char_);
}

// As many digits as 64 bits hold, and exponents that doubles have: what every program can read.
Grammar::Id JsonRules::number(bool whole) {
  auto& rule = numbers_[whole];
  if (!rule) {
    rule = g_.add_rule(whole ? "integer" : "number");
    const CharRange all[] = {{'0', '9'}}, first[] = {{'1', '9'}};
    auto digits = [&](uint32_t min, uint32_t max) { return g_.repeat(g_.chars(all), min, max); };
    const Id integer = g_.choice({g_.text("0"), g_.sequence({g_.chars(first), digits(0, 17)})});
    if (whole) {
      g_.define(*rule, g_.choice({g_.text("0"),
                                  g_.sequence({g_.optional(g_.text("-")), g_.chars(first), digits(0, 17)})}));
    } else {
      const Id sign = g_.chars({{'+', '+'}, {'-', '-'}}), e = g_.chars({{'E', 'E'}, {'e', 'e'}});
      g_.define(*rule, g_.sequence({g_.optional(g_.text("-")), integer,
                                    g_.optional(g_.sequence({g_.text("."), digits(1, 17)})),
                                    g_.optional(g_.sequence({e, g_.optional(sign), digits(1, 2)}))}));
    }
  }
  return g_.rule(*rule);
}

Grammar::Id JsonRules::value() {
  if (!value_) {
    value_ = g_.add_rule("value");
    g_.define(*value_, g_.choice({any_object(), any_array(), string(), number(false), g_.text("true"),
                                  g_.text("false"), g_.text("null")}));
  }
  return g_.rule(*value_);
}

Grammar::Id JsonRules::bracketed(const char* open, Id item, uint32_t min, uint32_t max, const char* close) {
  if (max == 0 || min > max) return min == 0 ? g_.sequence({g_.text(open), g_.text(close)}) : g_.never();
  const Id more =
      g_.repeat(g_.sequence({comma(), item}), min ? min - 1 : 0, max == kUnbounded ? max : max - 1);
  const Id filled = g_.sequence({item, more, space(), g_.text(close)});
  return g_.sequence({g_.text(open), space(), min ? filled : g_.choice({g_.text(close), filled})});
}

}  // namespace gimbal
