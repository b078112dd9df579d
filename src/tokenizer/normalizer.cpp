#include "tokenizer/normalizer.h"

#include <optional>

#include "base/format.h"
#include "base/json.h"
#include "base/json_cache.h"
#include "base/text.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/characters.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/letter_map.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/unicode_forms.h"
#include "tokenizer/vocabulary_tokenizer.h"

namespace gimbal {
namespace {

constexpr int kMaxDepth = 8;

// A function on texts; most steps are one.
template <class Function>
class Simple final : public Normalizer::Step {
 public:
  explicit Simple(Function f) : f_(std::move(f)) {}
  std::string apply(std::string text) const override { return f_(std::move(text)); }

 private:
  Function f_;
};
template <class Function>
std::shared_ptr<const Normalizer::Step> step(Function f) {
  return std::make_shared<Simple<Function>>(std::move(f));
}

std::string joined(const std::vector<std::string_view>& parts) {
  std::string out;
  for (std::string_view p : parts) out += p;
  return out;
}

// Each character by `each(code point, its bytes, out)`.
template <class Each>
std::string by_character(std::string_view text, Each&& each) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Step s = utf8_step(text, at);
    const std::string_view one = text.substr(at, s.bytes);
    if (s.kind == Utf8Step::Whole) each(code_point(one), one, out);
    else out += one;
    at += s.bytes;
  }
  return out;
}

std::string stripped(std::string text, bool left, bool right) {
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    const Utf8Step s = utf8_step(text, begin);
    if (s.kind != Utf8Step::Whole ||
        !is_white_space(code_point(std::string_view(text).substr(begin, s.bytes))))
      break;
    begin += s.bytes;
  }
  while (right && end > begin) {
    size_t at = end - 1;
    while (at > begin && (uint8_t(text[at]) & 0xc0) == 0x80) at--;
    const Utf8Step s = utf8_step(text, at);
    if (s.kind != Utf8Step::Whole || at + s.bytes != end ||
        !is_white_space(code_point(std::string_view(text).substr(at, s.bytes))))
      break;
    end = at;
  }
  return text.substr(begin, end - begin);
}

bool is_ideograph(uint32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) ||
         (c >= 0x2f800 && c <= 0x2fa1f);
}

Result<std::shared_ptr<const Normalizer::Step>> strip_accents() {
  auto marks = Pretokenizer::of_file(R"(\P{Mn}+)");
  if (!marks) return marks.error();
  auto kept = std::make_shared<const Pretokenizer>(*std::move(marks));
  return step([kept](std::string text) { return joined(kept->matches(text)); });
}

// SentencePiece's map of characters, longest first.
std::string by_charsmap(const Charsmap& map, std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Charsmap::Match match = map.longest(text);
    if (match.bytes) {
      out += match.replacement;
      text.remove_prefix(match.bytes);
      continue;
    }
    const size_t n = utf8_step(text, 0).bytes;
    out += text.substr(0, n);
    text.remove_prefix(n);
  }
  return out;
}

}  // namespace

Result<Normalizer> Normalizer::create(const Json& json) {
  Normalizer n;
  if (json.is_null()) return n;
  if (auto ok = n.add(json, 0); !ok) return ok.error();
  return n;
}

std::string Normalizer::apply(std::string text) const {
  for (const auto& s : steps_) text = s->apply(std::move(text));
  return text;
}

Status Normalizer::add(const Json& json, int depth) {
  const std::string type = text_in(json, "type");
  const auto flag = [&](const char* name, bool otherwise) {
    const auto at = json.find(name);
    return at != json.end() && at->is_boolean() ? at->get<bool>() : otherwise;
  };
  const auto malformed = [&](const std::string& what) {
    return Error{Code::Malformed, format("normalizer {}: {}", gimbal::quoted(type), what), ""};
  };
  if (type == "Sequence") {
    const auto all = json.find("normalizers");
    if (all == json.end() || !all->is_array() || depth == kMaxDepth)
      return malformed("expected a list of normalizers");
    for (const Json& one : *all)
      if (auto ok = add(one, depth + 1); !ok) return ok;
    return Done{};
  }
  for (const auto& [name, form] : {std::pair{"NFC", UnicodeForm::NFC},
                                   {"NFD", UnicodeForm::NFD},
                                   {"NFKC", UnicodeForm::NFKC},
                                   {"NFKD", UnicodeForm::NFKD}})
    if (type == name) {
      auto forms = std::make_shared<const UnicodeForms>();
      steps_.push_back(
          step([forms, form = form](std::string text) { return forms->normalized(text, form); }));
      return Done{};
    }
  if (type == "Lowercase") {
    // The one letter whose lower case has two characters.
    steps_.push_back(step([map = LetterMap::lower_case()](std::string text) {
      return map.apply(replaced(text, "\xc4\xb0", "i\xcc\x87"));
    }));
  } else if (type == "Prepend") {
    steps_.push_back(step(
        [front = text_in(json, "prepend")](std::string text) { return text.empty() ? text : front + text; }));
  } else if (type == "Strip") {
    const bool left = flag("strip_left", true), right = flag("strip_right", true);
    steps_.push_back(step([=](std::string text) { return stripped(std::move(text), left, right); }));
  } else if (type == "StripAccents") {
    auto made = strip_accents();
    if (!made) return made.error();
    steps_.push_back(*made);
  } else if (type == "Replace") {
    const auto pattern = json.find("pattern");
    if (pattern == json.end()) return malformed("'pattern' is missing");
    const std::string content = text_in(json, "content"), plain = text_in(*pattern, "String");
    if (!plain.empty()) {
      steps_.push_back(step([=](std::string text) { return replaced(text, plain, content); }));
      return Done{};
    }
    auto made = Pretokenizer::of_file(text_in(*pattern, "Regex"));
    if (!made) return made.error();
    auto matches = std::make_shared<const Pretokenizer>(*std::move(made));
    steps_.push_back(step([=](std::string text) {
      std::string out;
      size_t done = 0;
      for (std::string_view m : matches->matches(text)) {
        const auto at = size_t(m.data() - text.data());
        out.append(text, done, at - done).append(content);
        done = at + m.size();
      }
      return out.append(text, done);
    }));
  } else if (type == "Nmt") {
    // Characters that SentencePiece's first rules drop or turn into spaces.
    steps_.push_back(step([](std::string text) {
      return by_character(text, [](uint32_t c, std::string_view one, std::string& out) {
        const bool dropped =
            (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f;
        const bool space = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                           (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                           c == 0xfeff || c == 0xfffd;
        if (!dropped) out += space ? std::string_view(" ") : one;
      });
    }));
  } else if (type == "ByteLevel") {
    letters_ = true;
    steps_.push_back(step([](std::string text) {
      std::string out;
      for (const char c : text) out += letter_of_byte(uint8_t(c));
      return out;
    }));
  } else if (type == "Precompiled") {
    auto map = Charsmap::parse(base64_decoded(text_in(json, "precompiled_charsmap")).value_or(""));
    if (!map) return map.error();
    auto kept = std::make_shared<const Charsmap>(*std::move(map));
    steps_.push_back(step([kept](std::string text) { return by_charsmap(*kept, text); }));
  } else if (type == "BertNormalizer") {
    const bool lowers = flag("lowercase", true), accents = flag("strip_accents", lowers);
    if (flag("clean_text", true)) {
      auto made = Pretokenizer::of_file(R"((?:[\t\n\r]|[^\p{Cc}\p{Cf}\p{Co}\p{Cn}\x{fffd}])+)");
      if (!made) return made.error();
      auto kept = std::make_shared<const Pretokenizer>(*std::move(made));
      steps_.push_back(step([kept](std::string text) {
        return by_character(joined(kept->matches(text)),
                            [](uint32_t c, std::string_view one, std::string& out) {
                              if (c) out += is_white_space(c) ? std::string_view(" ") : one;
                            });
      }));
    }
    if (flag("handle_chinese_chars", true))
      steps_.push_back(step([](std::string text) {
        return by_character(text, [](uint32_t c, std::string_view one, std::string& out) {
          if (is_ideograph(c)) out.append(" ").append(one).append(" ");
          else out += one;
        });
      }));
    if (accents) {
      if (auto ok = add({{"type", "NFD"}}, depth); !ok) return ok;
      if (auto ok = add({{"type", "StripAccents"}}, depth); !ok) return ok;
    }
    if (lowers) return add({{"type", "Lowercase"}}, depth);
  } else {
    return Error{Code::Unsupported, format("the normalizer {} is not known", gimbal::quoted(type)),
                 "Use a newer gimbal, or a GGUF file of the model."};
  }
  return Done{};
}

}  // namespace gimbal
