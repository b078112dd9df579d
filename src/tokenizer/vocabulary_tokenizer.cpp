// The common frame of encoding and decoding.
#include "tokenizer/vocabulary_tokenizer.h"

#include "base/text.h"

namespace gimbal {
namespace {

// The algorithms count bytes in 32 bits; longer texts are cut, at a character's end where there is one.
constexpr size_t kMostBytes = size_t(1) << 30;

size_t cut_of(std::string_view text) {
  if (text.size() <= kMostBytes) return text.size();
  size_t cut = kMostBytes;
  for (int back = 0; back < 3 && (uint8_t(text[cut]) & 0xc0) == 0x80; ++back) --cut;
  return cut;
}

}  // namespace

VocabularyTokenizer::VocabularyTokenizer(Vocabulary vocabulary, bool adds_bos)
    : vocabulary_(std::move(vocabulary)),
      all_(vocabulary_, SpecialSplitter::Kinds::All),
      user_defined_(vocabulary_, SpecialSplitter::Kinds::UserDefined),
      adds_bos_(vocabulary_.add_bos.value_or(adds_bos) && vocabulary_.bos >= 0),
      adds_eos_(vocabulary_.add_eos.value_or(false) && vocabulary_.eos >= 0) {}

std::vector<Token> VocabularyTokenizer::encode(std::string_view text, TokenizeOptions options) const {
  std::vector<Token> out;
  if (options.add_bos && adds_bos_) out.push_back(vocabulary_.bos);
  bool starts = true;
  for (const Fragment& fragment : (options.parse_special ? all_ : user_defined_).split(text)) {
    if (fragment.token >= 0) {
      out.push_back(fragment.token);
      starts = true;
      continue;
    }
    for (std::string_view rest = fragment.text; !rest.empty();) {
      const size_t cut = cut_of(rest);
      encode_plain(rest.substr(0, cut), starts, out);
      rest.remove_prefix(cut);
      starts = false;
    }
  }
  if (options.add_bos && adds_eos_) out.push_back(vocabulary_.eos);
  return out;
}

std::string VocabularyTokenizer::piece(Token id, bool special) const {
  if (!vocabulary_.has(id)) return {};
  const TokenType type = vocabulary_.type(id);
  if (vocabulary_.is_control(id) || type == TokenType::Unknown)
    return special ? std::string(vocabulary_.text(id)) : std::string();
  switch (type) {
    case TokenType::UserDefined: return std::string(vocabulary_.text(id));
    case TokenType::Normal:
    case TokenType::Byte: return plain_piece(id);
    default: return {};  // unused tokens stand for nothing
  }
}

// The first token loses the space that encode() put there. After a BOS the space stays, as it does in
// llama.cpp: the sequence is then seen as tokens, not as a text.
std::string VocabularyTokenizer::decode(std::span<const Token> ids, bool special) const {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    text += piece(ids[i], special);
    if (i == 0 && adds_space() && text.starts_with(' ')) text.erase(0, 1);
  }
  return text;
}

int byte_of_name(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace gimbal
