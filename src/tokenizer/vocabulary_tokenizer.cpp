// The common frame of encoding and decoding.
#include "tokenizer/vocabulary_tokenizer.h"

#include "base/format.h"

namespace gimbal {
namespace {

// The algorithms count bytes in 32 bits; longer texts are cut, at the end of a character if possible.
constexpr size_t kMaxBytes = size_t(1) << 30;

size_t cut_of(std::string_view text) {
  if (text.size() <= kMaxBytes) return text.size();
  size_t cut = kMaxBytes;
  for (int back = 0; back < 3 && (uint8_t(text[cut]) & 0xc0) == 0x80; ++back) --cut;
  return cut;
}

}  // namespace

Affixes bos_and_eos(const Vocabulary& v, bool adds_bos, bool adds_eos) {
  return {v.add_bos.value_or(adds_bos) ? v.bos : -1, v.add_eos.value_or(adds_eos) ? v.eos : -1};
}

VocabularyTokenizer::VocabularyTokenizer(Vocabulary vocabulary, Affixes around)
    : vocabulary_(std::move(vocabulary)),
      all_(vocabulary_, SpecialSplitter::Kinds::All),
      user_defined_(vocabulary_, SpecialSplitter::Kinds::UserDefined),
      around_(around) {}

// During the search for special tokens, plain parts are replaced by a byte that no text has, except for their
// spaces, which a token may drop. Then user-defined tokens are searched in all parts.
std::vector<Fragment> VocabularyTokenizer::fragments(std::string_view text,
                                                     const TokenizeOptions& options) const {
  if (!options.parse_special) return user_defined_.split(text);
  if (options.plain.empty()) return all_.split(text);
  std::string masked(text);
  for (const TextRange& range : options.plain)
    for (size_t i = range.begin; i < std::min(range.end, masked.size()); i++)
      if (masked[i] != ' ' && (masked[i] < '\t' || masked[i] > '\r')) masked[i] = '\xff';
  std::vector<Fragment> out;
  for (const Fragment& f : all_.split(masked)) {
    const std::string_view part = text.substr(size_t(f.text.data() - masked.data()), f.text.size());
    if (f.token >= 0) {
      out.push_back({f.token, part});
      continue;
    }
    const auto inner = user_defined_.split(part);
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

std::vector<Token> VocabularyTokenizer::encode(std::string_view text, TokenizeOptions options) const {
  std::vector<Token> out;
  if (options.add_bos && around_.first >= 0) out.push_back(around_.first);
  bool starts = true;
  for (const Fragment& fragment : fragments(text, options)) {
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
  if (options.add_bos && around_.last >= 0) out.push_back(around_.last);
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
    default: return {};  // unused tokens have no text
  }
}

// The first token loses the space that encode() put there. After a BOS the space stays, as it does in
// llama.cpp: the sequence then counts as tokens, not as a text.
std::string VocabularyTokenizer::decode(std::span<const Token> ids, bool special) const {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    text += piece(ids[i], special);
    if (i == 0 && adds_space() && text.starts_with(' ')) text.erase(0, 1);
  }
  return text;
}

std::string VocabularyTokenizer::unescaped_piece(Token id) const {
  const std::string_view text = vocabulary_.text(id);
  if (vocabulary_.type(id) == TokenType::Byte)
    if (const int byte = byte_of_name(text); byte >= 0) return std::string(1, char(byte));
  return replaced(text, kSpaceMark, " ");
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  size_t done = 0;
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, done)) {
    out.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  return out.append(text, done);
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

std::vector<PrefixTree::Entry> plain_entries(const Vocabulary& vocabulary) {
  std::vector<PrefixTree::Entry> entries;
  for (Token id = 0; id < vocabulary.size(); ++id)
    if (vocabulary.is_plain(id)) entries.push_back({vocabulary.text(id), id});
  return entries;
}

std::array<Token, 256> byte_tokens(const Vocabulary& vocabulary) {
  std::array<Token, 256> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    const Token id = vocabulary.find(format("<0x{:02X}>", byte));
    tokens[size_t(byte)] = id >= 0 && vocabulary.type(id) == TokenType::Byte ? id : -1;
  }
  return tokens;
}

}  // namespace gimbal
