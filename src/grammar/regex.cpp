// Regular expressions of ECMA-262, as far as they are regular.
#include <optional>

#include "base/format.h"
#include "base/text.h"
#include "grammar/char_machine.h"

namespace gimbal {
namespace {

constexpr int kMaxNesting = 100;
constexpr uint32_t kMaxTimes = 100'000;
constexpr CharRange kDigitChars[] = {{'0', '9'}};
constexpr CharRange kWord[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
constexpr CharRange kSpaces[] = {{'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680},
                                 {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
                                 {0x3000, 0x3000}, {0xfeff, 0xfeff}};
constexpr CharRange kLineEnds[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

class RegexParser {
 public:
  RegexParser(std::string_view text, Grammar& grammar) : text_(text), g_(grammar) {}

  Result<Grammar::Id> parse() {
    if (!is_utf8(text_)) fail("it is no UTF-8");
    std::vector<Grammar::Id> all;
    do all.push_back(whole_alternative());
    while (!error_ && take('|'));
    if (!error_ && at_ < text_.size()) fail("there is a ')' too many");
    if (error_) return *error_;
    return g_.choice(all);
  }

 private:
  using Id = Grammar::Id;

  void fail(std::string_view what) {
    if (!error_)
      error_ =
          Error{Code::Usage,
                format("the pattern {} cannot be used, at byte {}: {}", gimbal::quoted(text_), at_ + 1, what),
                "write it in another way"};
  }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool more() const { return at_ < text_.size(); }
  bool take(char c) {
    if (!more() || peek() != c) return false;
    at_++;
    return true;
  }
  bool take(std::string_view s) {
    if (text_.substr(at_, s.size()) != s) return false;
    at_ += s.size();
    return true;
  }

  // Anything around it, but for what ^ and $ hold.
  Id whole_alternative() {
    const Id any = g_.repeat(g_.chars({{0, kLastChar}}), 0, kUnbounded);
    std::vector<Id> parts;
    if (!take('^')) parts.push_back(any);
    while (take('^')) {}
    parts.push_back(alternative(0));
    if (!take('$')) parts.push_back(any);
    while (take('$')) {}
    if (!error_ && more() && peek() != '|' && peek() != ')') fail("^ and $ are understood at the ends only");
    return g_.sequence(parts);
  }

  Id alternatives(int depth) {
    std::vector<Id> all;
    do all.push_back(alternative(depth));
    while (!error_ && take('|'));
    return g_.choice(all);
  }

  Id alternative(int depth) {
    std::vector<Id> items;
    while (!error_ && more() && peek() != '|' && peek() != ')') {
      if (peek() == '$' && depth == 0) break;
      const Id item = atom(depth);
      items.push_back(error_ ? item : quantified(item));
      if (g_.too_large()) fail("it is too large");
    }
    return g_.sequence(items);
  }

  Id atom(int depth) {
    if (take('(')) {
      if (depth == kMaxNesting) return fail("too many groups in each other"), 0;
      if (take("?:")) {
      } else if (take("?<") && peek() != '=' && peek() != '!') {
        while (more() && !take('>')) at_++;
      } else if (peek() == '?' || peek() == '=' || peek() == '!') {
        return fail("looking ahead and behind is not supported"), 0;
      }
      const Id inner = alternatives(depth + 1);
      if (!take(')')) fail("a ')' is missing");
      return inner;
    }
    if (take('[')) return char_class();
    if (take('.')) return g_.chars(complement(kLineEnds));
    const char c = peek();
    if (c == '^' || c == '$') return fail("^ and $ are understood at the ends only"), 0;
    if (c == '*' || c == '+' || c == '?') return fail("there is nothing to repeat"), 0;
    return g_.chars(escape_or_char(false));
  }

  Id quantified(Id item) {
    uint32_t min = 0, max = kUnbounded;
    if (take('*')) {
    } else if (take('+')) {
      min = 1;
    } else if (take('?')) {
      max = 1;
    } else if (peek() == '{' && peek(1) >= '0' && peek(1) <= '9') {
      at_++;
      min = max = number();
      if (take(',')) max = peek() == '}' ? kUnbounded : number();
      if (!take('}')) fail("a '}' is missing");
      if (max < min) fail("it repeats fewer times than at least");
    } else {
      return item;
    }
    take('?');  // which match is found first makes no other texts
    if (more() && (peek() == '*' || peek() == '+' || peek() == '?')) fail("there is nothing to repeat");
    return g_.repeat(item, min, max);
  }

  uint32_t number() {
    uint32_t n = 0;
    while (peek() >= '0' && peek() <= '9' && n <= kMaxTimes) n = n * 10 + uint32_t(text_[at_++] - '0');
    if (n > kMaxTimes) fail("it repeats too often");
    return n;
  }

  Id char_class() {
    const bool none_of = take('^');
    std::vector<CharRange> all;
    while (!error_ && !take(']')) {
      if (!more()) return fail("a ']' is missing"), 0;
      auto low = escape_or_char(true);
      if (peek() == '-' && peek(1) != ']' && at_ + 1 < text_.size() && low.size() == 1 &&
          low[0].low == low[0].high) {
        at_++;
        const auto high = escape_or_char(true);
        if (error_) break;
        if (high.size() != 1 || high[0].low != high[0].high || high[0].low < low[0].low)
          return fail("this is no range"), 0;
        low[0].high = high[0].low;
      }
      all.insert(all.end(), low.begin(), low.end());
    }
    all = sorted(std::move(all));
    return g_.chars(none_of ? complement(all) : all);
  }

  // \d and the like, or one character.
  std::vector<CharRange> escape_or_char(bool in_class) {
    if (!take('\\')) {
      if (!more()) return fail("it ends too early"), std::vector<CharRange>{{0, 0}};
      std::string_view rest = text_.substr(at_);
      const uint32_t c = take_char(rest);
      at_ = text_.size() - rest.size();
      return {{c, c}};
    }
    const char c = peek();
    at_ += more();
    auto all = [](std::span<const CharRange> ranges) {
      return std::vector<CharRange>(ranges.begin(), ranges.end());
    };
    auto one = [](uint32_t code) { return std::vector<CharRange>{{code, code}}; };
    switch (c) {
      case 'd': return all(kDigitChars);
      case 'D': return complement(kDigitChars);
      case 'w': return all(kWord);
      case 'W': return complement(kWord);
      case 's': return all(kSpaces);
      case 'S': return complement(kSpaces);
      case 'n': return one('\n');
      case 'r': return one('\r');
      case 't': return one('\t');
      case 'f': return one('\f');
      case 'v': return one('\v');
      case '0': return one(0);
      case 'x': return one(hex(2));
      case 'u': return one(code_unit());
      case 'b':
        if (in_class) return one('\b');
        break;
      default:
        if (c > ' ' && c < 0x7f && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') &&
            !(c >= 'A' && c <= 'Z'))
          return one(uint32_t(c));
        break;
    }
    fail(format("\\{} is not supported", c ? std::string(1, c) : ""));
    return one(0);
  }

  uint32_t code_unit() {
    if (take('{')) {
      uint32_t c = 0;
      while (!error_ && !take('}')) c = std::min(c << 4 | hex(1), kLastChar + 1);
      if (utf8_of(c).empty()) fail("this is no character");
      return c;
    }
    const uint32_t c = hex(4);
    if (c >= 0xd800 && c < 0xdc00 && take("\\u")) {
      const uint32_t low = hex(4);
      if (low >= 0xdc00 && low < 0xe000) return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    if (utf8_of(c).empty()) fail("this is no character");
    return c;
  }

  uint32_t hex(int digits) {
    uint32_t n = 0;
    for (int i = 0; i < digits; i++) {
      const char c = peek();
      const int d = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
      if (d < 0) return fail("hexadecimal digits are missing"), 0;
      n = n << 4 | uint32_t(d), at_++;
    }
    return n;
  }

  const std::string_view text_;
  size_t at_ = 0;
  Grammar& g_;
  std::optional<Error> error_;
};

}  // namespace

Result<Grammar::Id> parse_regex(std::string_view regex, Grammar& grammar) {
  return RegexParser(regex, grammar).parse();
}

}  // namespace gimbal
