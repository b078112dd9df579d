// The split expressions, run by the interpreter of PCRE2 (https://www.pcre.org).
#include "tokenizer/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#define PCRE2_STATIC
#include <pcre2.h>

#include <memory>
#include <optional>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

struct FreeCode {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};
struct FreeContext {
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};

// PCRE2's own \s also holds U+180E, which Unicode no longer counts as white space.
constexpr std::string_view kWhiteSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

// Writes out \s (inside and outside of brackets) and \S (outside only).
std::string with_white_space(std::string_view expression) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c != '\\') {
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      out += c;
      continue;
    }
    if (i + 1 == expression.size()) return out += c;  // PCRE2 refuses it
    const char escaped = expression[++i];
    if ((escaped != 's' && escaped != 'S') || (escaped == 'S' && in_class)) {
      out.append({c, escaped});
      continue;
    }
    if (!in_class) out += escaped == 's' ? "[" : "[^";
    out += kWhiteSpace;
    if (!in_class) out += "]";
  }
  return out;
}

// The same length with every byte that is not UTF-8 replaced by a control character.
std::string with_controls_for_broken_bytes(std::string_view text) {
  std::string out(text);
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    if (step.kind != Utf8Step::Whole) out.replace(at, step.bytes, step.bytes, '\x01');
    at += step.bytes;
  }
  return out;
}

}  // namespace

struct Pretokenizer::Expression {
  std::unique_ptr<pcre2_code, FreeCode> code;
};

Pretokenizer::Pretokenizer() = default;
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;
Pretokenizer::~Pretokenizer() = default;

namespace {

// Oniguruma's \p{Han} is the script alone; PCRE2's also has what several scripts share.
std::string with_scripts(std::string expression) {
  for (const char* script :
       {"Han", "Hiragana", "Katakana", "Hangul", "Latin", "Greek", "Cyrillic", "Arabic", "Hebrew", "Thai"})
    for (const char* form : {"\\p{", "\\P{"}) {
      const std::string plain = std::string(form) + script + "}",
                        exact = std::string(form) + "sc:" + script + "}";
      for (size_t at = 0; (at = expression.find(plain, at)) != expression.npos; at += exact.size())
        expression.replace(at, plain.size(), exact);
    }
  return expression;
}

// Null, and the reason, if PCRE2 refuses the expression.
pcre2_code* compiled(const std::string& expression, uint32_t options, std::string& reason) {
  int code = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* made =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | options, &code, &offset, nullptr);
  if (made) return made;
  unsigned char message[160] = "";
  pcre2_get_error_message(code, message, sizeof message);
  reason = format("{} at byte {} of {}", reinterpret_cast<const char*>(message), offset, expression);
  return nullptr;
}

constexpr uint32_t kStepsOfFile =
    10'000'000;  // of one match: a published expression takes a few for each character
constexpr size_t kMaxExpression = 1 << 16;

}  // namespace

Result<Pretokenizer> Pretokenizer::create(const SplitFamily& rules) {
  Pretokenizer result;
  for (const char* source : rules.expressions) {
    if (!source) break;
    std::string reason;
    Expression made;
    made.code.reset(compiled(with_white_space(source), 0, reason));
    if (!made.code)
      return Error{
          Code::Failed,
          format("the split expression of the pre-tokenizers '{}' does not compile: {}", rules.names, reason),
          "This is a bug in gimbal; please report it."};
    result.expressions_.push_back(std::move(made));
  }
  return result;
}

Result<Pretokenizer> Pretokenizer::of_file(const std::string& expression) {
  Pretokenizer result;
  result.limit_ = kStepsOfFile;
  std::string reason = format("it has {} bytes", expression.size());
  Expression made;
  if (expression.size() <= kMaxExpression)
    made.code.reset(compiled(with_white_space(with_scripts(expression)), PCRE2_NEVER_BACKSLASH_C, reason));
  if (!made.code)
    return Error{Code::Unsupported,
                 format("the expression that splits words is not understood: {}", gimbal::quoted(reason)),
                 "Use a GGUF file of the model, or report the model."};
  result.expressions_.push_back(std::move(made));
  return result;
}

namespace {

// One run over a text: PCRE2's memory for a match.
class Matcher {
 public:
  explicit Matcher(uint32_t limit)
      : match_(pcre2_match_data_create(1, nullptr)), context_(pcre2_match_context_create(nullptr)) {
    if (context_) pcre2_set_match_limit(context_.get(), limit);
  }
  bool ready() const { return match_ && context_; }

  struct Range {
    size_t begin, end;
  };
  // The first match from `at` on. An empty match must be after `at`, because a word ends there already.
  std::optional<Range> find(const pcre2_code* code, std::string_view text, size_t at) const {
    const auto run = [&](uint32_t options) {
      return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                         PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY_ATSTART | options, match_.get(), context_.get());
    };
    const int found = run(0);
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match_.get());
    if (found < 0 || range[1] <= at) return std::nullopt;
    return Range{range[0], range[1]};
  }

 private:
  std::unique_ptr<pcre2_match_data, FreeMatch> match_;
  std::unique_ptr<pcre2_match_context, FreeContext> context_;
};

}  // namespace

std::vector<std::string_view> Pretokenizer::split(std::string_view text) const {
  std::string repaired;
  std::string_view subject = text;
  if (!is_utf8(text)) subject = repaired = with_controls_for_broken_bytes(text);

  const Matcher matcher(limit_);
  if (!matcher.ready()) return {text};
  std::vector<size_t> ends;  // of the words
  if (!text.empty()) ends.push_back(text.size());
  std::vector<size_t> next;
  for (const Expression& expression : expressions_) {
    next.clear();
    size_t begin = 0;
    for (const size_t end : ends) {
      const std::string_view word = subject.substr(begin, end - begin);
      for (size_t at = 0; at < word.size();) {
        const auto match = matcher.find(expression.code.get(), word, at);
        if (!match) break;
        if (match->begin > at) next.push_back(begin + match->begin);
        if (match->end > match->begin) next.push_back(begin + match->end);
        at = match->end;
      }
      if (next.empty() || next.back() < end) next.push_back(end);
      begin = end;
    }
    ends.swap(next);
  }
  std::vector<std::string_view> words;
  words.reserve(ends.size());
  size_t begin = 0;
  for (const size_t end : ends) {
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

std::vector<std::string_view> Pretokenizer::matches(std::string_view text) const {
  std::string repaired;
  std::string_view subject = text;
  if (!is_utf8(text)) subject = repaired = with_controls_for_broken_bytes(text);
  const Matcher matcher(limit_);
  std::vector<std::string_view> found;
  for (size_t at = 0; matcher.ready() && at < text.size();) {
    const auto match = matcher.find(expressions_.front().code.get(), subject, at);
    if (!match) break;
    found.push_back(text.substr(match->begin, match->end - match->begin));
    at = match->end;
  }
  return found;
}

}  // namespace gimbal

// PCRE2 without its just-in-time compiler, which is an object of 240 kB in Debian's static library,
// referenced by the matching functions. The interpreter finds the words of a prompt in far less time than a
// step of a model (a whole `gimbal tokenize` of 290 kB: 0.09 s of processor time instead of 0.07 s), starts
// without compiling, and needs no memory that is both writable and executable, which hardened services
// forbid. These replacements of the compiler's functions report that nothing was compiled. If another version
// of PCRE2 references more of them, the linker also takes the library's object and reports duplicate
// definitions.
extern "C" {
void _pcre2_jit_free_8(void*, void*) {}
int _pcre2_jit_check_exec_8() { return 0; }
size_t _pcre2_jit_get_size_8(void*) { return 0; }
int pcre2_jit_match_8(const pcre2_code*, PCRE2_SPTR, PCRE2_SIZE, PCRE2_SIZE, uint32_t, pcre2_match_data*,
                      pcre2_match_context*) {
  return PCRE2_ERROR_JIT_BADOPTION;
}
}
