#include "files/name_pattern.h"

#include <regex.h>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {

struct NamePattern::Compiled {
  regex_t regex;
  int code;  // 0: `regex` holds memory

  explicit Compiled(const std::string& text)
      : code(regcomp(&regex, text.c_str(), REG_EXTENDED | REG_NOSUB)) {}
  Compiled(const Compiled&) = delete;
  ~Compiled() {
    if (code == 0) regfree(&regex);
  }
};

namespace {

// In the words of POSIX. Outside of brackets, where a backslash is an ordinary character.
std::string as_posix(const std::string& text) {
  std::string all;
  bool bracket = false;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (bracket) {
      // "]" is ordinary as the first character of a set.
      bracket = c != ']' || text[i - 1] == '[' || (text[i - 1] == '^' && text[i - 2] == '[');
      all += c;
    } else if (c == '\\' && next == 'd') {
      all += "[0-9]", i++;
    } else if (c == '\\' && next) {
      all += c, all += next, i++;
    } else if (c == '(' && text.compare(i, 3, "(?:") == 0) {
      all += c, i += 2;
    } else {
      bracket = c == '[';
      all += c;
    }
  }
  return all;
}

}  // namespace

Result<NamePattern> NamePattern::compile(const std::string& text) {
  NamePattern p;
  p.compiled_ = std::make_shared<const Compiled>(as_posix(text));
  if (p.compiled_->code == 0) return p;
  char why[128];
  regerror(p.compiled_->code, nullptr, why, sizeof why);
  return Error{Code::Usage, format("{} is no pattern of names: {}", quoted(text), why),
               "a POSIX extended regular expression is expected, such as 'ffn_down' or "
               "'blk\\.[0-3]\\.attn_(k|v)'"};
}

bool NamePattern::found_in(const std::string& name) const {
  return regexec(&compiled_->regex, name.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace gimbal
