#include "grammar/decimal.h"

#include <algorithm>

namespace gimbal {
namespace {

constexpr size_t kOpenDigits = 18;  // any 64-bit integer holds them
constexpr size_t kMostDigits = 40;  // of a factor
constexpr size_t kDigits = 15;      // decimals of so many digits are different doubles

int compare_magnitudes(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  if (int c = a.whole.compare(b.whole)) return c < 0 ? -1 : 1;
  const int c = a.part.compare(b.part);
  return c < 0 ? -1 : c > 0;
}

// Of digits, "": 0.
std::string plus_one(std::string digits) {
  for (size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '9') return digits[i]++, digits;
    digits[i] = '0';
  }
  return "1" + digits;
}
std::string minus_one(std::string digits) {
  for (size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '0') {
      digits[i]--;
      break;
    }
    digits[i] = '9';
  }
  return digits.starts_with('0') ? digits.substr(1) : digits;
}
bool less(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// Magnitudes as expressions.
class Numbers {
 public:
  explicit Numbers(Grammar& g) : g_(g) {}

  // Whole numbers from a to b.
  Grammar::Id whole(const std::string& a, const std::string& b) {
    if (less(b, a)) return g_.never();
    std::vector<Id> all;
    if (a.empty()) {
      all.push_back(g_.text("0"));
      if (!b.empty()) all.push_back(whole("1", b));
      return g_.choice(all);
    }
    if (a.size() == b.size()) return same_length(a, b);
    all.push_back(at_least(a));
    if (b.size() > a.size() + 1)
      all.push_back(g_.sequence({digit('1', '9'), digits(a.size(), b.size() - 2)}));
    all.push_back(same_length("1" + std::string(b.size() - 1, '0'), b));
    return g_.choice(all);
  }

  struct Bound {
    Decimal at;
    bool excluded;
  };

  // Decimals from a to b, with at most `most` digits after the point.
  Grammar::Id decimals(const Bound& a, const Bound& b, size_t most) {
    const int order = compare_magnitudes(a.at, b.at);
    if (order > 0 || (order == 0 && (a.excluded || b.excluded))) return g_.never();
    const Part low{a.at.part, a.excluded}, high{b.at.part, b.excluded};
    auto number = [&](const std::string& whole, const Part* from, const Part* to) {
      const Id behind = parts(from, to, most, true);
      const Id with = g_.sequence({g_.text("."), behind});
      return g_.sequence({g_.text(whole.empty() ? "0" : whole),
                          zero_fits(from, to) ? g_.choice({g_.nothing(), with}) : with});
    };
    if (a.at.whole == b.at.whole) return number(a.at.whole, &low, &high);
    std::vector<Id> all{number(a.at.whole, &low, nullptr), number(b.at.whole, nullptr, &high)};
    const std::string first = plus_one(a.at.whole), last = minus_one(b.at.whole);
    if (!less(last, first))
      all.push_back(
          g_.sequence({whole(first, last), g_.optional(g_.sequence({g_.text("."), digits(1, most)}))}));
    return g_.choice(all);
  }

 private:
  using Id = Grammar::Id;
  struct Part {  // a bound on the fraction digits
    std::string digits;
    bool excluded;
    Part rest() const { return {digits.empty() ? "" : digits.substr(1), excluded}; }
    char first() const { return digits.empty() ? '0' : digits[0]; }
  };

  Id digit(char low, char high) {
    return low > high ? g_.never() : g_.chars({{uint32_t(low), uint32_t(high)}});
  }
  Id digits(size_t min, size_t max) { return g_.repeat(digit('0', '9'), uint32_t(min), uint32_t(max)); }
  Id one(char c) { return g_.text(std::string_view(&c, 1)); }

  // Digit strings of equal length, from a to b.
  Id same_length(std::string_view a, std::string_view b) {
    if (a.empty()) return g_.nothing();
    const size_t rest = a.size() - 1;
    if (a[0] == b[0]) return g_.sequence({one(a[0]), same_length(a.substr(1), b.substr(1))});
    return g_.choice({g_.sequence({one(a[0]), at_least(a.substr(1))}),
                      g_.sequence({digit(char(a[0] + 1), char(b[0] - 1)), digits(rest, rest)}),
                      g_.sequence({one(b[0]), at_most(b.substr(1))})});
  }
  Id at_least(std::string_view a) {
    if (a.empty()) return g_.nothing();
    return g_.choice({g_.sequence({one(a[0]), at_least(a.substr(1))}),
                      g_.sequence({digit(char(a[0] + 1), '9'), digits(a.size() - 1, a.size() - 1)})});
  }
  Id at_most(std::string_view b) {
    if (b.empty()) return g_.nothing();
    return g_.choice({g_.sequence({one(b[0]), at_most(b.substr(1))}),
                      g_.sequence({digit('0', char(b[0] - 1)), digits(b.size() - 1, b.size() - 1)})});
  }

  static bool zero_fits(const Part* from, const Part* to) {
    return !(from && (!from->digits.empty() || from->excluded)) &&
           !(to && to->digits.empty() && to->excluded);
  }

  // At most `most` fraction digits, between bounds (nullptr: none); `some`: at least one.
  Id parts(const Part* from, const Part* to, size_t most, bool some) {
    if (!from && !to) return digits(some, most);
    std::vector<Id> all;
    if (!some && zero_fits(from, to)) all.push_back(g_.nothing());
    if (most > 0) {
      const char low = from ? from->first() : '0', high = to ? to->first() : '9';
      const Part from_rest = from ? from->rest() : Part{}, to_rest = to ? to->rest() : Part{};
      auto add = [&](Id digit, const Part* f, const Part* t) {
        // An inclusive lower bound of zeros has no effect.
        if (f && f->digits.empty() && !f->excluded) f = nullptr;
        all.push_back(g_.sequence({digit, parts(f, t, most - 1, false)}));
      };
      if (low == high) {
        add(one(low), from ? &from_rest : nullptr, to ? &to_rest : nullptr);
      } else if (low < high) {
        const bool low_edge = from, high_edge = to;
        if (low_edge) add(one(low), &from_rest, nullptr);
        if (high_edge) add(one(high), nullptr, &to_rest);
        const char begin = char(low + low_edge), end = char(high - high_edge);
        if (begin <= end) add(digit(begin, end), nullptr, nullptr);
      }
    }
    return g_.choice(all);
  }

  Grammar& g_;
};

}  // namespace

Decimal Decimal::of(std::string_view text) {
  Decimal d;
  d.negative = text.starts_with('-');
  if (d.negative) text.remove_prefix(1);
  int exponent = 0;
  if (const size_t e = text.find_first_of("eE"); e != text.npos) {
    bool minus = false;
    for (char c : text.substr(e + 1)) {
      minus |= c == '-';
      if (c >= '0' && c <= '9') exponent = std::min(exponent * 10 + (c - '0'), 10'000);
    }
    if (minus) exponent = -exponent;
    text = text.substr(0, e);
  }
  const size_t point = std::min(text.find('.'), text.size());
  d.whole = text.substr(0, point);
  if (point < text.size()) d.part = text.substr(point + 1);
  for (; exponent > 0; exponent--) {
    d.whole += d.part.empty() ? '0' : d.part[0];
    if (!d.part.empty()) d.part.erase(0, 1);
  }
  for (; exponent < 0; exponent++) {
    d.part.insert(d.part.begin(), d.whole.empty() ? '0' : d.whole.back());
    if (!d.whole.empty()) d.whole.pop_back();
  }
  d.whole.erase(0, std::min(d.whole.find_first_not_of('0'), d.whole.size()));
  while (d.part.ends_with('0')) d.part.pop_back();
  if (d.zero()) d.negative = false;
  return d;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return a.negative ? -compare_magnitudes(a, b) : compare_magnitudes(a, b);
}

std::optional<uint64_t> digits_of(const Decimal& factor) {
  const std::string digits = factor.whole + factor.part;
  const size_t first = std::min(digits.find_first_not_of('0'), digits.size());
  if (digits.size() - first > 18) return std::nullopt;
  uint64_t n = 0;
  for (size_t i = first; i < digits.size(); i++) n = n * 10 + uint64_t(digits[i] - '0');
  return n;
}

// Both are scaled by the factor's digits after the point; a number with more of them is no multiple.
std::optional<bool> multiple_of(const Decimal& value, const Decimal& factor) {
  const auto n = digits_of(factor);
  if (!n || *n == 0) return std::nullopt;
  if (value.part.size() > factor.part.size()) return false;
  unsigned __int128 rest = 0;
  for (char c : value.whole + value.part + std::string(factor.part.size() - value.part.size(), '0'))
    rest = (rest * 10 + unsigned(c - '0')) % *n;
  return rest == 0;
}

void NumberBounds::at_least(const Decimal& bound, bool excluded) {
  const int c = low ? compare(bound, *low) : 1;
  if (c > 0) low = bound, low_excluded = excluded;
  else if (c == 0) low_excluded |= excluded;
}

void NumberBounds::at_most(const Decimal& bound, bool excluded) {
  const int c = high ? compare(bound, *high) : -1;
  if (c < 0) high = bound, high_excluded = excluded;
  else if (c == 0) high_excluded |= excluded;
}

bool NumberBounds::hold(const Decimal& d) const {
  if (low)
    if (const int c = compare(d, *low); c < 0 || (c == 0 && low_excluded)) return false;
  if (high)
    if (const int c = compare(d, *high); c > 0 || (c == 0 && high_excluded)) return false;
  return std::all_of(factors.begin(), factors.end(),
                     [&](const Decimal& f) { return multiple_of(d, f).value_or(false); });
}

bool NumberBounds::disjoint(const NumberBounds& other) const {
  auto below = [](const NumberBounds& a, const NumberBounds& b) {
    if (!a.high || !b.low) return false;
    const int c = compare(*a.high, *b.low);
    return c < 0 || (c == 0 && (a.high_excluded || b.low_excluded));
  };
  return below(*this, other) || below(other, *this);
}

Grammar::Id bounded_numbers(Grammar& g, const NumberBounds& bounds, bool whole) {
  size_t open = kOpenDigits;
  for (const auto* b : {&bounds.low, &bounds.high})
    if (*b) open = std::max(open, (*b)->whole.size() + 1);
  Decimal low = bounds.low.value_or(Decimal{true, std::string(open, '9'), ""});
  Decimal high = bounds.high.value_or(Decimal{false, std::string(open, '9'), ""});
  size_t digits = 1;
  for (const auto* b : {&bounds.low, &bounds.high})
    if (*b) digits = std::max({digits, (*b)->part.size(), kDigits - std::min(kDigits, (*b)->whole.size())});
  for (const Decimal& f : bounds.factors) digits = std::max(digits, std::min(f.part.size(), kMostDigits));
  Numbers numbers(g);
  // Magnitudes from a to b, both of the same sign; a whole number is moved to the next one inside.
  auto between = [&](Numbers::Bound a, Numbers::Bound b) {
    if (!whole) return numbers.decimals(a, b, digits);
    if (!a.at.part.empty() || a.excluded) a.at.whole = plus_one(a.at.whole);
    if (b.at.part.empty() && b.excluded) {
      if (b.at.whole.empty()) return g.never();
      b.at.whole = minus_one(b.at.whole);
    }
    return numbers.whole(a.at.whole, b.at.whole);
  };
  const Decimal zero;
  std::vector<Grammar::Id> all;
  if (low.negative) {  // there is no "-0"
    Numbers::Bound least{high.negative ? high : zero,
                         high.negative ? bounds.high_excluded && bounds.high.has_value() : true};
    all.push_back(g.sequence({g.text("-"), between(least, {low, bounds.low_excluded})}));
  }
  if (!high.negative) {
    const Numbers::Bound least =
        low.negative ? Numbers::Bound{zero, false} : Numbers::Bound{low, bounds.low_excluded};
    all.push_back(between(least, {high, bounds.high_excluded}));
  }
  return g.choice(all);
}

}  // namespace gimbal
