// Reads GBNF: rules `name ::= alternatives`, of "literals", [classes], names, (groups), `.`, and tokens,
// which are <name> or <[number]>; each repeated by * + ? {m} {m,} {m,n}; comments begin with #. A rule ends
// with its line, but for groups and behind `|`.
#include <map>
#include <optional>

#include "base/format.h"
#include "base/text.h"
#include "grammar/grammar.h"

namespace gimbal {
namespace {

constexpr size_t kMaxTextBytes = 4 << 20;
constexpr int kMaxGroups = 1000;
constexpr int kMaxSuffixes = 8;  // as in x*?+
constexpr uint32_t kMaxRepetition = kUnbounded - 1;

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}
bool is_digit_char(char c) { return c >= '0' && c <= '9'; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

class GbnfParser {
 public:
  explicit GbnfParser(std::string_view text) : text_(text) {}

  Result<Grammar> parse() {
    if (text_.size() > kMaxTextBytes) {
      fail(0, format("it has {} bytes, at most {} are allowed", text_.size(), kMaxTextBytes));
      return *error_;
    }
    for (size_t i = 0; i < text_.size();) {
      const Utf8Step step = utf8_step(text_, i);
      if (step.kind != Utf8Step::Whole) return fail(i, "this is no UTF-8"), *error_;
      i += step.bytes;
    }
    rule_of("root", 0);
    space(true);
    while (!error_ && at_ < text_.size()) definition();
    if (!error_ && rules_.size() == 1 && !rules_[0].defined && definitions_ == 0)
      fail(at_, "there is no rule");
    for (size_t r = 0; !error_ && r < rules_.size(); r++)
      if (!rules_[r].defined)
        fail(rules_[r].place, format("there is no rule {}", gimbal::quoted(grammar_.rules()[r].name)),
             r ? "define it, or correct its name" : "name the rule to begin with 'root'");
    if (error_) return *error_;
    return std::move(grammar_);
  }

 private:
  using Id = Grammar::Id;
  struct Known {
    size_t place;  // where it was named first
    bool defined = false;
  };

  void fail(size_t at, std::string what,
            std::string_view remedy = "see the documentation of GBNF, the format of llama.cpp's grammars") {
    if (error_) return;
    size_t line = 1, begin = 0;
    for (size_t i = 0; i < at && i < text_.size(); i++)
      if (text_[i] == '\n') line++, begin = i + 1;
    size_t column = 1;
    for (size_t i = begin; i < at && i < text_.size(); i++) column += (uint8_t(text_[i]) & 0xc0) != 0x80;
    error_ = Error{Code::Usage, format("grammar, line {}, column {}: {}", line, column, what), remedy, "",
                   "grammar"};
  }
  void expected(std::string_view what) {
    const bool end = at_ >= text_.size();
    fail(at_, format("expected {}, found {}", what,
                     end ? "the end" : gimbal::quoted(text_.substr(at_, utf8_step(text_, at_).bytes))));
  }

  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    at_++;
    return true;
  }

  void space(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') at_++;
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        at_++;
      } else {
        return;
      }
    }
  }

  std::string_view name() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) at_++;
    if (begin == at_) expected("the name of a rule");
    return text_.substr(begin, at_ - begin);
  }

  Id rule_of(std::string_view name, size_t place) {
    const auto [it, added] = numbers_.emplace(std::string(name), Id(rules_.size()));
    if (added) {
      grammar_.add_rule(it->first);
      rules_.push_back({place});
    }
    return it->second;
  }

  void definition() {
    const size_t place = at_;
    const std::string_view called = name();
    if (error_) return;
    const Id rule = rule_of(called, place);
    definitions_++;
    if (rules_[rule].defined)
      return fail(place, format("the rule {} is defined twice", gimbal::quoted(called)), "leave one of them");
    space(false);
    if (text_.substr(at_, 3) != "::=") return expected("'::='");
    at_ += 3;
    space(true);
    const Id expr = alternatives(0);
    if (error_) return;
    grammar_.define(rule, expr);
    rules_[rule].defined = true;
    if (at_ < text_.size() && peek() != '\n' && peek() != '\r') return expected("the end of the line");
    space(true);
  }

  Id alternatives(int depth) {
    std::vector<Id> all{sequence(depth)};
    while (!error_ && more_alternatives(depth)) {
      space(true);
      all.push_back(sequence(depth));
    }
    return grammar_.choice(all);
  }

  // `|`, which may also begin the next line.
  bool more_alternatives(int depth) {
    const size_t before = at_;
    if (depth == 0) space(true);
    if (take('|')) return true;
    at_ = before;
    return false;
  }

  Id sequence(int depth) {
    std::vector<Id> items;
    while (!error_ && at_ < text_.size()) {
      const char c = peek();
      Id item;
      if (c == '"') item = literal();
      else if (c == '[') item = char_class();
      else if (c == '(') item = group(depth);
      else if (c == '.') at_++, item = grammar_.chars({{0, kLastChar}});
      else if (c == '<') item = token();
      else if (c == '!') {
        fail(at_, "any token but one (!<...>) is not supported", "write what may stand there");
        break;
      } else if (is_name(c)) {
        const size_t place = at_;
        item = grammar_.rule(rule_of(name(), place));
      } else {
        break;
      }
      space(depth > 0);
      items.push_back(repeated(item, depth));
      if (grammar_.too_large())
        fail(at_, format("the grammar has more than {} parts", Grammar::kMaxExprs), "write a smaller one");
    }
    return grammar_.sequence(items);
  }

  Id group(int depth) {
    if (depth >= kMaxGroups)
      return fail(at_, format("more than {} groups in each other", kMaxGroups),
                  "write rules in place of groups"),
             0;
    at_++;
    space(true);
    const Id inner = alternatives(depth + 1);
    if (!take(')')) expected("')'");
    return inner;
  }

  Id repeated(Id item, int depth) {
    for (int times = 0; !error_; times++) {
      uint32_t min = 0, max = kUnbounded;
      const size_t place = at_;
      if (times == kMaxSuffixes && (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{'))
        fail(place, format("more than {} repetitions of repetitions", kMaxSuffixes));
      if (take('*')) {
      } else if (take('+')) {
        min = 1;
      } else if (take('?')) {
        max = 1;
      } else if (take('{')) {
        space(true);
        min = peek() == ',' ? 0 : number();
        space(true);
        max = min;
        if (take(',')) {
          space(true);
          max = peek() == '}' ? kUnbounded : number();
          space(true);
        }
        if (!take('}')) expected("'}'");
        if (!error_ && max < min)
          fail(place, format("{{{},{}}} repeats fewer times than at least", min, max));
      } else {
        return item;
      }
      item = grammar_.repeat(item, min, max);
      space(depth > 0);
    }
    return item;
  }

  uint32_t number() {
    uint64_t n = 0;
    const size_t place = at_;
    if (!is_digit_char(peek())) return expected("a number of repetitions"), 0;
    while (is_digit_char(peek()) && n <= kMaxRepetition) n = n * 10 + uint64_t(text_[at_++] - '0');
    if (n > kMaxRepetition)
      fail(place, format("more than {} repetitions", kMaxRepetition), "leave the upper bound out: {m,}");
    return uint32_t(n);
  }

  // One character of a literal or a class.
  uint32_t character() {
    if (peek() != '\\') {
      std::string_view rest = text_.substr(at_);
      const uint32_t c = take_char(rest);
      at_ = text_.size() - rest.size();
      return c;
    }
    const size_t place = at_++;
    const char kind = peek();
    at_ += at_ < text_.size();
    switch (kind) {
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^': return uint32_t(kind);
      case 'x': return hex(place, 2);
      case 'u': return hex(place, 4);
      case 'U': return hex(place, 8);
      default: break;
    }
    fail(place, R"(this is no escape: there are \n \r \t \\ \" \[ \] \- \^ \xNN \uNNNN \UNNNNNNNN)");
    return 0;
  }

  uint32_t hex(size_t place, int digits) {
    uint32_t c = 0;
    for (int i = 0; i < digits; i++) {
      const int d = hex_digit(peek());
      if (d < 0) return fail(place, format("the escape needs {} hexadecimal digits", digits)), 0;
      c = c << 4 | uint32_t(d), at_++;
    }
    if (utf8_of(c).empty()) fail(place, format("U+{:04X} is no character", c));
    return c;
  }

  Id literal() {
    const size_t place = at_++;
    std::string text;
    while (!error_ && peek() != '"') {
      if (at_ >= text_.size() || peek() == '\n') return fail(place, "the literal has no '\"' at its end"), 0;
      text += utf8_of(character());
    }
    at_++;
    return grammar_.text(text);
  }

  Id token() {
    const size_t place = at_, end = text_.find('>', at_);
    const std::string_view written = text_.substr(place, end == text_.npos ? 0 : end + 1 - place);
    at_ += written.size();
    if (written.size() <= 2 || written.find('\n') != written.npos)
      fail(place, "a token is written as <name> or <[number]>");
    return grammar_.token(written);
  }

  Id char_class() {
    const size_t place = at_++;
    const bool none_of = take('^');
    std::vector<CharRange> ranges;
    while (!error_ && peek() != ']') {
      if (at_ >= text_.size() || peek() == '\n')
        return fail(place, "the class of characters has no ']' at its end"), 0;
      const size_t first = at_;
      const uint32_t low = character();
      uint32_t high = low;
      if (peek() == '-' && peek(1) != ']') {
        at_++;
        if (at_ >= text_.size()) return fail(place, "the class of characters has no ']' at its end"), 0;
        high = character();
      }
      if (high < low) return fail(first, "the range ends before it begins"), 0;
      ranges.push_back({low, high});
    }
    at_++;
    if (none_of) ranges = complement(sorted(std::move(ranges)));
    return grammar_.chars(ranges);
  }

  const std::string_view text_;
  size_t at_ = 0;
  Grammar grammar_;
  std::map<std::string, Id, std::less<>> numbers_;
  std::vector<Known> rules_;
  size_t definitions_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Grammar> Grammar::gbnf(std::string_view text) { return GbnfParser(text).parse(); }

}  // namespace gimbal
