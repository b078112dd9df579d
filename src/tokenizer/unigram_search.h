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
  // Appends the tokens of a text that is normalised already. Neighbouring unknown characters become one
  // unknown token.
  void encode(std::string_view text, std::vector<Token>& out) const;

 private:
  const Vocabulary& vocabulary_;
  const PrefixTree tokens_;
  float unknown_score_;
};

}  // namespace gimbal
