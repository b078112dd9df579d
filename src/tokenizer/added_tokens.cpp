#include "tokenizer/added_tokens.h"

#include "base/text.h"
#include "tokenizer/characters.h"

namespace gimbal {
namespace {

// The character that ends before `at`; 0 if there is none.
uint32_t character_before(std::string_view text, size_t at) {
  size_t begin = at;
  while (begin > 0 && at - begin < 4) {
    begin--;
    if ((uint8_t(text[begin]) & 0xc0) != 0x80) break;
  }
  if (begin == at) return 0;
  const Utf8Step s = utf8_step(text, begin);
  return s.kind == Utf8Step::Whole && begin + s.bytes == at ? code_point(text.substr(begin, s.bytes)) : 0;
}

uint32_t character_at(std::string_view text, size_t at) {
  if (at >= text.size()) return 0;
  const Utf8Step s = utf8_step(text, at);
  return s.kind == Utf8Step::Whole ? code_point(text.substr(at, s.bytes)) : 0;
}

// Letters, digits and the underscore; beyond ASCII everything but white space counts.
bool in_word(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
         (c >= 0x80 && !is_white_space(c));
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)), tree_(entries(tokens_)) {}

std::vector<PrefixTree::Entry> AddedTokens::entries(const std::vector<AddedToken>& tokens) {
  std::vector<PrefixTree::Entry> all;
  for (size_t i = 0; i < tokens.size(); i++) all.push_back({tokens[i].text, Token(i)});
  return all;
}

bool AddedTokens::stands_alone(std::string_view text, size_t begin, size_t end) {
  return !in_word(character_before(text, begin)) && !in_word(character_at(text, end));
}

size_t AddedTokens::before_spaces(std::string_view text, size_t at, size_t least) {
  while (at > least) {
    const uint32_t c = character_before(text, at);
    std::string bytes;
    append_character(c, bytes);
    if (!c || !is_white_space(c) || at - bytes.size() < least) break;
    at -= bytes.size();
  }
  return at;
}

size_t AddedTokens::behind_spaces(std::string_view text, size_t at) {
  for (uint32_t c; (c = character_at(text, at)) && is_white_space(c);) at += utf8_step(text, at).bytes;
  return at;
}

}  // namespace gimbal
