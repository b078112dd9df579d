// The split expressions of the model families, run with PCRE2 (https://www.pcre.org), compiled to machine
// code where the system allows it.
#include "tokenizer/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#define PCRE2_STATIC
#include <pcre2.h>

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

// ---- The table of split expressions. They are facts of the models, published in their tokenizer.json files.
// The reference vocabularies check gpt-2, starcoder, falcon, llama-bpe, qwen2 and DeepSeek's first two; the
// rest are checked word by word against another engine. Case-insensitive parts are spelled out, so that no
// Unicode case folding comes in.

constexpr char kGpt2[] = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Llama 3's and Qwen 2's expressions differ in how many digits make a word.
constexpr char kThreeDigits[] =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kOneDigit[] =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kQwen35[] =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// These begin a new word at an upper-case letter after a lower-case one.
constexpr char kTekken[] =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kGpt4o[] = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                          R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
                          R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                          R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3})"
                          R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Cased letters, as DeepSeek's file lists them: fewer than today's Unicode has.
constexpr char kDeepSeekLetters[] =
    R"(\s?[)"
    R"(A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293})"
    R"(\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c})"
    R"(\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5})"
    R"(\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b})"
    R"(\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45})"
    R"(\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4})"
    R"(\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb})"
    R"(\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115})"
    R"(\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f})"
    R"(\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee})"
    R"(\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787})"
    R"(\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a})"
    R"(\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2})"
    R"(\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943})"
    "]+";
// From U+0800 on, whatever the first range seems to say: the file's ranges overlap.
constexpr char kCjk[] = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
constexpr char kDeepSeekMarks[] =
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)";
// The published \s+$, with a guard and without going back: the plain form takes quadratic time on long runs
// of spaces.
constexpr char kSpacesAtEnd[] = R"((?<!\s)\s++$)";
constexpr char kDeepSeek3Words[] =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr SplitFamily kFamilies[] = {
    {"gpt-2 phi-2 olmo mpt jais exaone4 jina-es jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum "
     "trillion granite-docling",
     {kGpt2}},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", {R"(\p{N})", kGpt2}},
    {"falcon", {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, "[0-9][0-9][0-9]"}},
    {"default", {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2", {kThreeDigits}, true, true},
    {"dbrx smaug-bpe glm4 chatglm-bpe", {kThreeDigits}},
    {"qwen2 deepseek-r1-qwen stablelm2 megrez kormo hunyuan solar-open grok-2", {kOneDigit}},
    {"qwen35", {kQwen35}},
    {"tekken", {kTekken}, true, true},
    {"gpt-4o llama4 kanana2", {kGpt4o}},
    {"deepseek-llm", {R"([\r\n])", kDeepSeekLetters, kDeepSeekMarks, kSpacesAtEnd, kCjk, R"(\p{N}+)"}},
    {"deepseek-coder", {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjk, R"(\p{N})"}},
    {"deepseek-v3 hunyuan-dense joyai-llm",
     {R"(\p{N}{1,3})", R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)", kDeepSeek3Words}},
};

std::vector<std::string_view> names_of(const SplitFamily& family) {
  std::vector<std::string_view> names;
  std::string_view rest = family.names;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    names.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

}  // namespace

std::span<const SplitFamily> split_families() { return kFamilies; }

const SplitFamily* split_family_named(std::string_view name) {
  for (const SplitFamily& family : kFamilies)
    for (std::string_view n : names_of(family))
      if (n == name) return &family;
  return nullptr;
}

std::string split_family_names() {
  std::vector<std::string_view> all;
  for (const SplitFamily& family : kFamilies)
    for (std::string_view n : names_of(family)) all.push_back(n);
  std::sort(all.begin(), all.end());
  std::string text;
  for (std::string_view n : all) text.append(text.empty() ? "" : ", ").append(n);
  return text;
}

// ---- Running them.

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
    const char escaped = expression[++i];
    if (escaped != 's' && escaped != 'S') {
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

Result<Pretokenizer> Pretokenizer::create(const SplitFamily& rules) {
  Pretokenizer result;
  for (const char* source : rules.expressions) {
    if (!source) break;
    const std::string expression = with_white_space(source);
    int code = 0;
    PCRE2_SIZE offset = 0;
    Expression compiled;
    compiled.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                                      PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &code, &offset, nullptr));
    if (!compiled.code) {
      unsigned char message[160] = "";
      pcre2_get_error_message(code, message, sizeof message);
      return Error{
          Code::Failed,
          format("the split expression of the pre-tokenizers '{}' does not compile: {} at byte {} of {}",
                 rules.names, reinterpret_cast<const char*>(message), offset, expression),
          "This is a bug in gimbal; please report it."};
    }
    pcre2_jit_compile(compiled.code.get(),
                      PCRE2_JIT_COMPLETE);  // without it the interpreter runs: same words
    result.expressions_.push_back(std::move(compiled));
  }
  return result;
}

std::vector<std::string_view> Pretokenizer::split(std::string_view text) const {
  std::string repaired;
  std::string_view subject = text;
  if (!is_utf8(text)) subject = repaired = with_controls_for_broken_bytes(text);

  const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create(1, nullptr));
  const std::unique_ptr<pcre2_match_context, FreeContext> context(pcre2_match_context_create(nullptr));
  std::vector<size_t> ends;  // of the words
  if (!text.empty()) ends.push_back(text.size());
  if (!match || !context) return {text};
  pcre2_set_match_limit(context.get(), UINT32_MAX);
  std::vector<size_t> next;
  for (const Expression& expression : expressions_) {
    next.clear();
    size_t begin = 0;
    for (const size_t end : ends) {
      const std::string_view word = subject.substr(begin, end - begin);
      for (size_t at = 0; at < word.size();) {
        const auto run = [&](uint32_t options) {
          return pcre2_match(expression.code.get(), reinterpret_cast<PCRE2_SPTR>(word.data()), word.size(),
                             at, PCRE2_NO_UTF_CHECK | options, match.get(), context.get());
        };
        int found = run(0);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = run(PCRE2_NO_JIT);
        const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match.get());
        if (found < 0 || range[1] <= at) break;  // nothing more in this word
        if (range[0] > at) next.push_back(begin + range[0]);
        if (range[1] > range[0]) next.push_back(begin + range[1]);
        at = range[1];
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

}  // namespace gimbal
