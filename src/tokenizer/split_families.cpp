// The table of split expressions: facts of the models, published in their tokenizer.json files. The reference
// vocabularies check gpt-2, starcoder, falcon, llama-bpe, qwen2 and DeepSeek's first two;
// scripts/oracle/tokenization.py compares every family with llama.cpp. Case-insensitive parts are spelled
// out, so that no Unicode case folding comes in. Where llama.cpp only approximates the published expression
// (tekken, gpt-4o, granite-embed-multi-97m, youtu, tiny_aya, kimi-k2: letters by case, marks, \b, the script
// Han), the published one stands here.
#include "tokenizer/split_families.h"

#include <algorithm>

#include "base/text.h"

namespace gimbal {
namespace {

#define CONTRACTION "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define SPACES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SYMBOLS_LINES_SPACES "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES
#define SYMBOLS_SLASHES_SPACES "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACES

constexpr char kGpt2[] = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Llama 3's and Qwen 2's expressions differ in how many digits make a word.
#define WORD "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
constexpr char kThreeDigits[] = CONTRACTION WORD "|\\p{N}{1,3}" SYMBOLS_LINES_SPACES;
constexpr char kOneDigit[] = CONTRACTION WORD "|\\p{N}" SYMBOLS_LINES_SPACES;
constexpr char kManyDigits[] = CONTRACTION WORD "|\\p{N}+" SYMBOLS_LINES_SPACES;
constexpr char kOneDigitNoContractions[] = R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" SYMBOLS_LINES_SPACES;
constexpr char kQwen35[] =
    CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" SPACES;
constexpr char kBailing[] = R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
                            R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr char kSeedCoder[] = CONTRACTION WORD R"(|\p{N}| ?[^\s\p{L}\p{N}\r\n]+)" SPACES;
constexpr char kExaoneMoe[] =
    CONTRACTION R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?)"
                R"(|\s*[\r\n]|\s+(?!\S)|\s+)";
// Spaces in runs of powers of two.
constexpr char kJais2[] = CONTRACTION WORD
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S))"
    R"(|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)";

// These begin a new word at an upper-case letter after a lower-case one.
#define CASED_WORDS(suffix)                                                                \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" suffix \
  R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" suffix
constexpr char kTekken[] = CASED_WORDS("") "|\\p{N}" SYMBOLS_SLASHES_SPACES;
constexpr char kGpt4o[] = CASED_WORDS(CONTRACTION "?") "|\\p{N}{1,3}" SYMBOLS_SLASHES_SPACES;
constexpr char kYoutuWords[] = CASED_WORDS(CONTRACTION "?") "|\\p{N}" SYMBOLS_SLASHES_SPACES;
constexpr char kYoutuScripts[] =
    R"([\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+|[\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019}\x{2014})"
    R"(\x{ff1a}\x{ff1b}\x{ff0c}\x{3001}-\x{303f}\x{fe30}-\x{fe4f}]+|[\x{3105}-\x{312f}]+)"
    R"(|[\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
// Kimi's words hold no Han characters.
#define NOT_HAN(set) "(?:(?!\\p{sc:Han})" set ")"
#define KIMI_UPPER NOT_HAN(R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])")
#define KIMI_LOWER NOT_HAN(R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])")
constexpr char kKimi[] = R"(\p{sc:Han}+|[^\r\n\p{L}\p{N}]?)" KIMI_UPPER "*" KIMI_LOWER "+" CONTRACTION
                         R"(?|[^\r\n\p{L}\p{N}]?)" KIMI_UPPER "+" KIMI_LOWER "*" CONTRACTION
                         R"(?|\p{N}{1,3})" SYMBOLS_LINES_SPACES;

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
// From U+0800 on, despite the first range: the file's ranges overlap. White space within them does not count,
// as in llama.cpp, which is the reference here.
constexpr char kCjk[] = R"((?:(?!\s)[\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}])+)";
constexpr char kDeepSeekMarks[] =
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3001}\x{3002}]+)";
// The published \s+$, with a guard and without going back: the plain form takes quadratic time on long runs
// of spaces.
constexpr char kSpacesAtEnd[] = R"((?<!\s)\s++$)";
constexpr char kHanKana[] = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
#define MARKED_WORDS R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
constexpr char kDeepSeek3Words[] = MARKED_WORDS R"(| ?[\p{P}\p{S}]+[\r\n]*)" SPACES;
constexpr char kSparkWords[] = MARKED_WORDS R"(| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";

// Digits in groups of three from the right. The published forms look ahead to the end of the number at every
// group, which takes quadratic time; these do so once and continue from there (\G).
constexpr char kAfmoeDigits[] = R"((?<!\p{N})\p{N}{1,3}(?=(?:\p{N}{3})*+(?!\p{N}))|\G(?<=\p{N})\p{N}{3})";
constexpr char kAyaDigits[] = R"((?<!\d)\d{1,3}(?=(?:\d{3})*+\b)|\G(?<=\d)\d{3})";
// Published as (?=(\d{3})+(?!\d)): the places between groups, nothing else.
constexpr char kSuperDigits[] =
    R"((?<!\d)(?=(?:\d{3})++(?!\d))|(?<!\d)\d{1,3}\K(?=(?:\d{3})++(?!\d))|\G(?<=\d)\d{3}\K(?=\d))";
// As the file has them, the third range too.
constexpr char kAfmoeScripts[] =
    R"([\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{8c48}-\x{faff}\x{3040}-\x{309f}\x{30a0}-\x{30ff})"
    R"(\x{ff65}-\x{ff9f}\x{2f00}-\x{2fdf}\x{e40}-\x{e7f}\x{e80}-\x{eff}\x{1780}-\x{17ff}\x{1000}-\x{109f})"
    R"(\x{aa60}-\x{aa7f}\x{a9e0}-\x{a9ff}\x{ac00}-\x{d7af}\x{1100}-\x{11ff}]+)";

constexpr char kBloom[] = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+)";
constexpr char kLines[] = R"([^\n]+|\n+)";

using enum SplitFamily::Trait;

constexpr SplitFamily kFamilies[] = {
    {"gpt-2 phi-2 olmo mpt jais exaone4 jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code "
     "roberta-bpe modern-bert gigachat a.x-4.0 mellum trillion granite-docling",
     {kGpt2}},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", {R"(\p{N})", kGpt2}},
    {"falcon", {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, "[0-9][0-9][0-9]"}},
    {"default", {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
     {kThreeDigits},
     WholeWords | AddsBos},
    {"dbrx smaug-bpe glm4 chatglm-bpe", {kThreeDigits}},
    {"qwen2 deepseek-r1-qwen stablelm2 megrez kormo f2llmv2 hunyuan solar-open grok-2", {kOneDigit}},
    {"qwen35", {kQwen35}},
    {"laguna", {kLines, kOneDigit}},
    {"ufakzeka", {kOneDigitNoContractions}},
    {"minicpm5", {R"(\p{N}{1,3})", kManyDigits}, WholeWords},
    {"bailingmoe bailingmoe2 llada-moe", {kBailing}},
    {"seed-coder", {kSeedCoder}},
    {"exaone-moe", {kExaoneMoe}},
    {"jais-2", {kJais2}},
    {"tekken", {kTekken}, WholeWords | AddsBos},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", {kGpt4o}},
    {"granite-embed-multi-97m", {kGpt4o}, WholeWords},
    {"youtu", {kYoutuScripts, kYoutuWords}, WholeWords},
    {"kimi-k2", {kKimi}},
    {"tiny_aya cohere2moe", {kAyaDigits, kGpt4o}},
    {"superbpe", {R"(\p{N}+)", kSuperDigits}},
    {"afmoe", {kAfmoeDigits, kAfmoeScripts, kDeepSeek3Words}},
    {"deepseek-llm", {R"([\r\n])", kDeepSeekLetters, kDeepSeekMarks, kSpacesAtEnd, kCjk, R"(\p{N}+)"}},
    {"deepseek-coder", {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjk, R"(\p{N})"}},
    {"deepseek-v3 hunyuan-dense joyai-llm hy_v4", {R"(\p{N}{1,3})", kHanKana, kDeepSeek3Words}},
    {"spark2_5", {R"(\p{N}{1,3})", kHanKana, kSparkWords, R"(\p{N})"}},
    {"chameleon",
     {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", "[\\t\\n]|    |  ", R"(\p{N})", R"([\p{P}!-/:-@\[-`{-~])",
      kGpt2},
     AddsBos},
    {"bloom gpt3-finnish poro-chat", {kBloom}},
    {"viking", {kBloom, R"(\p{N})"}},
    // Tokens of these are written as they read, not in GPT-2's alphabet.
    {"gemma4 granite-embed-multi-311m",
     {kLines},
     Characters | EscapesSpaces | WholeNewlines | AddsBos | IgnoresAddBos},
    {"sarvam-moe", {kLines}, Characters | EscapesSpaces},
    {"whitespace", {R"(\S+)"}, Characters},
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

std::vector<std::string> split_family_names() {
  std::vector<std::string> all;
  for (const SplitFamily& family : kFamilies)
    for (std::string_view n : names_of(family)) all.emplace_back(n);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace gimbal
