#include "gpu/text/kernel_text.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/format.h"

namespace gimbal::gpu {
namespace {

// Loads within loads repeat their places several times.
constexpr size_t kMostText = 64 << 10, kMostCompleted = 1 << 20;
constexpr int kMostDepth = 64;
constexpr std::string_view kBody = "CUSTOM_BODY", kWords = "CUSTOM_WORDS", kPlaceholder = "CUSTOM_";

bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool in_name(char c) { return starts_name(c) || digit(c); }

struct Word {
  size_t arguments;
  std::string_view meaning;
};
using Words = std::map<std::string, Word, std::less<>>;

// @ "NAME" ARGUMENTS meaning @
Words words_of(std::string_view text) {
  Words all;
  for (size_t at = 0; (at = text.find("@ \"", at)) != text.npos;) {
    const size_t name = at + 3, quote = text.find('"', name), end = text.find('@', quote);
    if (quote == text.npos || end == text.npos) break;
    std::string_view meaning = text.substr(quote + 1, end - quote - 1);
    meaning.remove_prefix(std::min(meaning.find_first_not_of(' '), meaning.size()));
    const size_t arguments = meaning.empty() ? 0 : size_t(meaning[0] - '0');
    meaning.remove_prefix(std::min<size_t>(meaning.size(), 2));
    meaning.remove_suffix(meaning.size() - (meaning.find_last_not_of(' ') + 1));
    all.emplace(text.substr(name, quote - name), Word{arguments, meaning});
    at = end + 1;
  }
  return all;
}

class Completion {
 public:
  Completion(const Words& words, std::string_view text) : words_(words), text_(text) {}

  Failure failure;
  std::string body() { return expanded(text_, 0); }

 private:
  std::string fail(size_t at, const std::string& what) {
    if (!failure) {
      const auto line = 1 + std::count(text_.begin(), text_.begin() + long(at), '\n');
      failure = {Failure::Invalid, format("kernel text, line {}: {}", line, what)};
    }
    return {};
  }
  size_t place_of(std::string_view part) const { return size_t(part.data() - text_.data()); }

  // `part` is a part of text_.
  std::string expanded(std::string_view part, int depth) {
    if (depth > kMostDepth) return fail(place_of(part), "parentheses are nested too deeply");
    std::string out;
    for (size_t i = 0; i < part.size() && !failure;) {
      const char c = part[i];
      if (starts_name(c)) {
        size_t end = i;
        while (end < part.size() && in_name(part[end])) end++;
        word(part, i, &end, depth, &out);
        i = end;
      } else if (digit(c) || (c == '.' && i + 1 < part.size() && digit(part[i + 1]))) {
        while (i < part.size() && (in_name(part[i]) || part[i] == '.' || sign_of_exponent(part, i)))
          out += part[i++];
      } else if (part.substr(i, 2) == "//") {
        i = std::min(part.find('\n', i), part.size());
      } else if (std::string_view("#@\\\"'`$").find(c) != std::string_view::npos) {
        return fail(place_of(part) + i, format("'{}' is no part of the kernel dialect", c));
      } else {
        out += c, i++;
      }
      if (out.size() > kMostCompleted)
        return fail(place_of(part) + i,
                    "the text is too long with its words expanded; put loads within loads into LET first");
    }
    return out;
  }

  static bool sign_of_exponent(std::string_view part, size_t i) {
    return i > 0 && (part[i] == '+' || part[i] == '-') && (part[i - 1] == 'e' || part[i - 1] == 'E') &&
           part.substr(0, i).find_last_of("xX") == std::string_view::npos;
  }

  // The name at [begin, *end), with its arguments if it is a word that has some.
  void word(std::string_view part, size_t begin, size_t* end, int depth, std::string* out) {
    const std::string_view name = part.substr(begin, *end - begin);
    const size_t at = place_of(part) + begin;
    if (name.find("__") != name.npos || name.back() == '_' || name.starts_with("custom_") ||
        name.starts_with("CUSTOM_"))
      return fail(at, format("the name '{}' is reserved; choose one without __, without _ at its end and "
                             "without custom_ at its beginning",
                             name)),
             void();
    std::vector<std::string_view> arguments;
    size_t open = std::min(part.find_first_not_of(" \t\r\n", *end), part.size());
    const bool called = open < part.size() && part[open] == '(';
    size_t close = open;
    if (called && !split(part, open, &close, &arguments)) return;
    // Loads and stores are words of their operand.
    std::string known(name);
    if (name == "LOAD" || name == "STORE") {
      const std::string_view operand = called ? trimmed(arguments[0]) : std::string_view();
      known += "_" + std::string(operand);
      if (!words_.contains(known))
        return fail(at, name == "LOAD" ? format("LOAD({}, ...): expected x, x0, x1 or x2", operand)
                                       : format("STORE({}, ...): expected y", operand)),
               void();
      arguments.erase(arguments.begin());
      if (name == "STORE" && !arguments.empty() && trimmed(arguments[0]) != "at")
        return fail(at, format("STORE(y, {}, ...): a text writes element `at` alone", trimmed(arguments[0]))),
               void();
    }
    const auto found = words_.find(known);
    if (found == words_.end()) return *out += name, void();
    const Word& w = found->second;
    if (w.arguments == 0) return *out += w.meaning, void();
    if (!called || arguments.size() != w.arguments)
      return fail(at, format("{}: expected {} arguments, found {}", name, w.arguments + (known != name),
                             called ? arguments.size() + (known != name) : 0)),
             void();
    std::vector<std::string> values;
    for (std::string_view a : arguments) values.push_back(expanded(trimmed(a), depth + 1));
    if (failure) return;
    for (size_t i = 0; i < w.meaning.size();) {
      if (w.meaning.substr(i).starts_with(kPlaceholder)) {
        *out += values[size_t(w.meaning[i + kPlaceholder.size()] - '1')];
        i += kPlaceholder.size() + 1;
      } else {
        *out += w.meaning[i++];
      }
    }
    *end = close + 1;
  }

  // The arguments between the parenthesis at `open` and its end.
  bool split(std::string_view part, size_t open, size_t* close, std::vector<std::string_view>* out) {
    int depth = 0;
    size_t begin = open + 1;
    for (size_t i = open; i < part.size(); i++) {
      const char c = part[i];
      depth += (c == '(' || c == '[') - (c == ')' || c == ']');
      if (depth == 0 || (depth == 1 && c == ',')) {
        out->push_back(part.substr(begin, i - begin));
        begin = i + 1;
      }
      if (depth == 0) return *close = i, true;
    }
    return fail(place_of(part) + open, "this parenthesis has no end"), false;
  }
  static std::string_view trimmed(std::string_view s) {
    const size_t begin = s.find_first_not_of(" \t\r\n"), end = s.find_last_not_of(" \t\r\n");
    return begin == s.npos ? s.substr(0, 0) : s.substr(begin, end - begin + 1);
  }

  const Words& words_;
  std::string_view text_;
};

}  // namespace

Failure complete_text(std::string_view frame, std::string_view text, std::string* out) {
  const size_t body = frame.find(kBody), words = frame.rfind(kWords);
  if (body == frame.npos || words == frame.npos || body > words)
    return {Failure::Invalid, "the frame of kernel texts is damaged"};
  if (text.size() > kMostText)
    return {Failure::Invalid, format("a kernel text has at most {} bytes, found {}", kMostText, text.size())};
  const Words known = words_of(frame.substr(words));
  Completion c(known, text);
  const std::string completed = c.body();
  if (c.failure) return c.failure;
  out->assign(frame.substr(0, body))
      .append(completed)
      .append(frame.substr(body + kBody.size(), words - body - kBody.size()));
  return {};
}

}  // namespace gimbal::gpu
