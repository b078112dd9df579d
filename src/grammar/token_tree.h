// The vocabulary's tokens by their bytes: a tree to walk with an automaton. Built once for a vocabulary,
// immutable.
//
// Most tokens are plain: a few whole characters, none of which means anything within a JSON string. Where any
// plain text may stand, or any but for some characters, it is found out without looking at each which of them
// may.
#pragma once
#include <memory>
#include <vector>

#include "grammar/grammar.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {

class TokenTree {
 public:
  struct Node {
    uint32_t next;   // behind its children
    Token token;     // that ends here; -1: none
    uint16_t depth;  // bytes to here, from 1
    uint8_t byte;
  };
  using Nodes = std::vector<Node>;  // each before its children, those of the root first to last

  // `tokens`: the size of the model's vocabulary, at least that of the tokenizer's. Control tokens, tokens
  // without a text and those that end a text are not in the tree.
  static std::shared_ptr<const TokenTree> create(const Tokenizer&, int tokens);

  const Nodes& plain() const { return plain_; }
  const Nodes& others() const { return others_; }
  // The plain tokens of at most so many characters, as a mask, 64 tokens in each word.
  std::span<const uint64_t> plain_of_length(int chars) const { return row(size_t(chars)); }
  // The plain tokens that have a character of this kind.
  std::span<const uint64_t> plain_with(size_t kind) const { return row(kPlainChars + 1 + kind); }
  size_t words() const { return words_; }   // of a mask
  int longest() const { return longest_; }  // bytes of a token

  std::span<const Token> ends() const { return ends_; }  // which end a text
  bool is_end(Token id) const;
  std::string_view text(Token id) const;  // empty for what is not in the tree
  // The control token that GBNF writes so, <name> or <[number]>, or the one of this text; -1: there is none.
  Token written(std::string_view) const;
  bool is_control(Token) const;  // and does not end a text
  // Further tokens that have the same text as the first.
  std::span<const std::pair<Token, Token>> twins() const { return twins_; }
  // The characters that can be written with tokens for just them or for their bytes; empty: all.
  std::span<const CharRange> alphabet() const { return alphabet_; }

  static constexpr int kPlainChars = 16;  // of a plain token at most
  // Kinds of plain characters: each of ASCII from the space on, and all others together.
  static constexpr size_t kPlainKinds = 0x7f - 0x20 + 1;
  static size_t plain_kind(uint8_t byte) { return byte < 0x7f ? byte - 0x20u : kPlainKinds - 1; }
  // The state of UTF-8 behind a byte of plain text, 0 being between characters; -1: no plain text.
  static int plain_next(int state, uint8_t byte);

 private:
  std::span<const uint64_t> row(size_t n) const {
    return std::span(plain_masks_).subspan(n * words_, words_);
  }
  void add_plain(std::string_view text, Token);
  void find_alphabet(const std::vector<std::pair<std::string_view, Token>>& sorted);

  Nodes plain_, others_;
  size_t words_ = 0;
  std::vector<uint64_t> plain_masks_;  // rows: by length, then by kind
  std::vector<Token> ends_;
  std::string texts_;
  std::vector<uint32_t> text_ends_;
  std::vector<std::pair<std::string, Token>> controls_;  // by token
  std::vector<std::pair<Token, Token>> twins_;
  std::vector<CharRange> alphabet_;
  int longest_ = 0;
};

}  // namespace gimbal
