// Unigram: of all ways to write a text as tokens, the one with the highest sum of scores. Kudo, "Subword
// regularization", 2018 (arXiv:1804.10959); the search goes from left to right over the ends of tokens
// (Viterbi).
#pragma once
#include <string_view>
#include <vector>

#include "tokenizer/prefix_tree.h"
#include "tokenizer/vocabulary.h"

namespace gimbal {

class UnigramSearch {
 public:
  // Keeps a reference to the vocabulary, which has scores and must outlive it.
  explicit UnigramSearch(const Vocabulary&);
  struct Piece {
    Token token;
    std::string_view text;  // a part of the encoded one
  };
  // The tokens of a text that is normalised already, and what each stands for. Neighbouring unknown
  // characters are one unknown token.
  std::vector<Piece> pieces(std::string_view text) const;
  // Appends these tokens.
  void encode(std::string_view text, std::vector<Token>& out) const;

 private:
  const Vocabulary& vocabulary_;
  const PrefixTree tokens_;
  float unknown_score_;
};

}  // namespace gimbal
