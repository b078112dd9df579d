// A prefix tree (trie) of the vocabulary's tokens by their bytes, walked together with an automaton. Built
// once per vocabulary; immutable.
//
// Most tokens are plain: a few whole characters, none of them special within a JSON string. In states that
// allow any plain text, or all but certain characters, masks give the allowed plain tokens without a visit to
// each.
#pragma once
#include <memory>
#include <vector>

#include "grammar/grammar.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {

class TokenTree {
 public:
  struct Node {
    uint32_t next;   // index after its subtree
    Token token;     // that ends here; -1: none
    uint16_t depth;  // length in bytes, from 1
    uint8_t byte;
  };
  using Nodes = std::vector<Node>;  // in preorder

  // `tokens`: the size of the model's vocabulary, at least that of the tokenizer's. The tree excludes control
  // tokens, tokens without text, and end-of-text tokens.
  static std::shared_ptr<const TokenTree> create(const Tokenizer&, int tokens);

  const Nodes& plain() const { return plain_; }
  const Nodes& others() const { return others_; }
  // Mask of the plain tokens with at most this many characters, 64 tokens per word.
  std::span<const uint64_t> plain_of_length(int chars) const { return row(size_t(chars)); }
  // Mask of the plain tokens that contain a character of this kind.
  std::span<const uint64_t> plain_with(size_t kind) const { return row(kPlainChars + 1 + kind); }
  size_t words() const { return words_; }   // per mask
  int longest() const { return longest_; }  // largest token, in bytes

  std::span<const Token> ends() const { return ends_; }  // end-of-text tokens
  bool is_end(Token id) const;
  std::string_view text(Token id) const;  // empty for tokens outside the tree
  // The control token in GBNF notation, <name> or <[number]>, or with this text; -1 if there is none.
  Token written(std::string_view) const;
  bool is_control(Token) const;  // and no end-of-text token
  // Pairs of tokens with equal text: the second is not in the tree.
  std::span<const std::pair<Token, Token>> twins() const { return twins_; }
  // The characters that tokens can produce, whole or byte by byte; empty: all.
  std::span<const CharRange> alphabet() const { return alphabet_; }

  static constexpr int kPlainChars = 16;  // maximum length of a plain token
  // Kinds of plain characters: each ASCII character from the space on, and one for all others.
  static constexpr size_t kPlainKinds = 0x7f - 0x20 + 1;
  static size_t plain_kind(uint8_t byte) { return byte < 0x7f ? byte - 0x20u : kPlainKinds - 1; }
  // The UTF-8 decoder state after a byte of plain text, 0 between characters; -1: not plain.
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
