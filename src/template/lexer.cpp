#include "template/lexer.h"

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "base/text.h"
#include "template/text.h"

namespace gimbal::tmpl {

Error template_error(Code code, int line, std::string_view what) {
  return Error{code, format("chat template, line {}: {}", line, what), ""};
}

std::string normal_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); i++) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    out += source[i] == '\r' ? '\n' : source[i];
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
bool word(char c) {
  return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || uint8_t(c) >= 0x80;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : s_(source) {}

  Result<std::vector<Lexeme>> run() {
    while (at_ < s_.size() && !error_) text();
    if (error_) return *error_;
    add(Lexeme::End, s_.substr(s_.size()));
    return std::move(out_);
  }

 private:
  bool here(std::string_view t) const { return s_.substr(at_).starts_with(t); }
  void fail(std::string_view what) {
    if (!error_) error_ = template_error(Code::Malformed, line_, what);
  }
  void add(Lexeme::Kind kind, std::string_view text) { out_.push_back({kind, text, line_}); }
  void advance(size_t bytes) {
    line_ += int(std::count(s_.begin() + long(at_), s_.begin() + long(at_ + bytes), '\n'));
    at_ += bytes;
  }
  void skip_space() {
    while (at_ < s_.size() && is_space(code_at(s_, at_))) advance(next_code(s_, at_) - at_);
  }

  // The end of the text before a tag at `tag`, whose sign is behind its two characters.
  size_t end_of_text(size_t begin, size_t tag, bool may_strip) const {
    const std::string_view text = s_.substr(begin, tag - begin);
    const char sign = tag + 2 < s_.size() ? s_[tag + 2] : ' ';
    if (sign == '-') return begin + stripped(text, nullptr, false, true).end;
    if (sign == '+' || !may_strip) return tag;
    const size_t line = text.rfind('\n') + 1;  // 0 if it has no newline
    if (line == 0 && !at_line_start_) return tag;
    const Span rest = stripped(text.substr(line), nullptr, true, false);
    return rest.begin == rest.end ? begin + line : tag;
  }

  void data(size_t begin, size_t end) {
    if (end > begin) add(Lexeme::Data, s_.substr(begin, end - begin));
  }

  // After the last character of a tag: "-" takes all white space, else one newline goes unless there is a
  // "+".
  void after_tag(char sign, bool trims) {
    const size_t before = at_;
    if (sign == '-') skip_space();
    else if (trims && sign != '+' && here("\n")) advance(1);
    at_line_start_ = at_ > before && s_[at_ - 1] == '\n';
  }

  // Text up to a tag, and the tag.
  void text() {
    size_t tag = at_;
    for (;; tag++) {
      tag = s_.find('{', tag);
      if (tag >= s_.size() || tag + 1 == s_.size()) return data(at_, s_.size()), advance(s_.size() - at_);
      const char c = s_[tag + 1];
      if (c == '{' || c == '%' || c == '#') break;
    }
    const char opener = s_[tag + 1];
    data(at_, end_of_text(at_, tag, opener != '{'));
    advance(tag - at_);
    const size_t sign = at_ + 2 < s_.size() && (s_[at_ + 2] == '-' || s_[at_ + 2] == '+') ? 1 : 0;
    if (opener == '#') {
      const size_t end = s_.find("#}", at_ + 2 + sign);
      if (end == s_.npos) return fail("this comment has no end '#}'");
      const char last = end > at_ + 2 + sign ? s_[end - 1] : ' ';
      advance(end + 2 - at_);
      return after_tag(last, true);
    }
    if (opener == '%' && raw()) return;
    add(opener == '{' ? Lexeme::PrintBegin : Lexeme::BlockBegin, s_.substr(at_, 2));
    advance(2 + sign);
    inside(opener == '{');
  }

  // Goes over "{% word %}" whose "{%" is at `from`, up to the end of the tag; npos when there is another one.
  size_t bare_tag(size_t from, std::string_view word, char& last) const {
    size_t at = from + 2;
    if (at < s_.size() && (s_[at] == '-' || s_[at] == '+')) at++;
    const auto spaces = [&] {
      while (at < s_.size() && is_space(code_at(s_, at))) at = next_code(s_, at);
    };
    spaces();
    if (!s_.substr(at).starts_with(word)) return s_.npos;
    at += word.size();
    spaces();
    last = at < s_.size() ? s_[at] : ' ';
    if (last == '-' || last == '+') at++;
    return s_.substr(at).starts_with("%}") ? at + 2 : s_.npos;
  }

  // {% raw %} ... {% endraw %}: all text.
  bool raw() {
    char last = 0;
    const size_t begin = bare_tag(at_, "raw", last);
    if (begin == s_.npos || last == '+') return false;
    advance(begin - at_);
    after_tag(last, false);
    for (size_t tag = at_; (tag = s_.find("{%", tag)) != s_.npos; tag++) {
      const size_t end = bare_tag(tag, "endraw", last);
      if (end == s_.npos) continue;
      data(at_, std::max(at_, end_of_text(at_, tag, true)));
      advance(end - at_);
      after_tag(last, true);
      return true;
    }
    fail("{% raw %} has no {% endraw %}");
    return true;
  }

  // The words of a tag, up to its end.
  void inside(bool prints) {
    const std::string_view close = prints ? "}}" : "%}";
    std::string open;
    while (!error_) {
      skip_space();
      if (at_ == s_.size()) return fail(prints ? "{{ has no end '}}'" : "{% has no end '%}'");
      if (open.empty()) {
        const char sign = s_[at_] == '-' || (!prints && s_[at_] == '+') ? s_[at_] : ' ';
        if (s_.substr(at_ + (sign != ' ')).starts_with(close)) {
          add(prints ? Lexeme::PrintEnd : Lexeme::BlockEnd, close);
          advance(2 + (sign != ' '));
          return after_tag(sign, !prints);
        }
      }
      if (digit(s_[at_])) number();
      else if (word(s_[at_])) take(Lexeme::Name, [](char c) { return word(c); });
      else if (s_[at_] == '\'' || s_[at_] == '"') string();
      else this->sign(open);
    }
  }

  template <class While>
  void take(Lexeme::Kind kind, While goes_on) {
    size_t end = at_;
    while (end < s_.size() && goes_on(s_[end])) end++;
    add(kind, s_.substr(at_, end - at_));
    advance(end - at_);
  }

  void number() {
    const auto digits = [&](size_t end) {
      while (end < s_.size() &&
             (digit(s_[end]) || (s_[end] == '_' && end + 1 < s_.size() && digit(s_[end + 1]))))
        end++;
      return end;
    };
    const auto digit_at = [&](size_t i) { return i < s_.size() && digit(s_[i]); };
    if (s_[at_] == '0' && at_ + 1 < s_.size() && std::string_view("xXoObB").find(s_[at_ + 1]) != s_.npos)
      return take(Lexeme::Integer, [](char c) { return word(c); });
    size_t end = digits(at_);
    Lexeme::Kind kind = Lexeme::Integer;
    if (at_ == 0 || s_[at_ - 1] != '.') {  // x.1.2 is two indices
      if (end < s_.size() && s_[end] == '.' && digit_at(end + 1)) end = digits(end + 1), kind = Lexeme::Float;
      if (end < s_.size() && (s_[end] == 'e' || s_[end] == 'E')) {
        const size_t sign = end + 1 < s_.size() && (s_[end + 1] == '-' || s_[end + 1] == '+') ? 1 : 0;
        if (digit_at(end + 1 + sign)) end = digits(end + 1 + sign), kind = Lexeme::Float;
      }
    }
    add(kind, s_.substr(at_, end - at_));
    advance(end - at_);
  }

  void string() {
    size_t end = at_ + 1;
    while (end < s_.size() && s_[end] != s_[at_]) end += s_[end] == '\\' ? 2 : 1;
    if (end >= s_.size()) return fail("a string has no end");
    add(Lexeme::Str, s_.substr(at_, end + 1 - at_));
    advance(end + 1 - at_);
  }

  void sign(std::string& open) {
    for (std::string_view two : {"==", "!=", "<=", ">=", "//", "**"})
      if (here(two)) return add(Lexeme::Sign, s_.substr(at_, 2)), advance(2);
    const char c = s_[at_];
    if (std::string_view("+-/*%~[](){}=<>.:|,;").find(c) == s_.npos)
      return fail(format("unexpected character {}", quoted(s_.substr(at_, next_code(s_, at_) - at_))));
    if (c == '(') open += ')';
    else if (c == '[') open += ']';
    else if (c == '{') open += '}';
    else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) return fail(format("unexpected '{}'", c));
      open.pop_back();
    }
    add(Lexeme::Sign, s_.substr(at_, 1));
    advance(1);
  }

  std::string_view s_;
  size_t at_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;
  std::vector<Lexeme> out_;
  std::optional<Error> error_;
};

}  // namespace

Result<std::vector<Lexeme>> lex(std::string_view source) { return Lexer(source).run(); }

}  // namespace gimbal::tmpl
