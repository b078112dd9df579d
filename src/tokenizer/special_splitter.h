// Finds special tokens that are written out in a text, before any other step of tokenization.
#pragma once
#include <string_view>
#include <vector>

#include "tokenizer/prefix_tree.h"
#include "tokenizer/vocabulary.h"

namespace gimbal {

// A piece of a text: either a special token or plain text between special tokens (token is -1 then, text not
// empty).
struct Fragment {
  Token token;
  std::string_view text;
};

class SpecialSplitter {
 public:
  enum class Kinds {
    All,          // control, unknown and user-defined tokens
    UserDefined,  // recognised even if special text counts as plain text
  };
  // Keeps a reference to the vocabulary, which must outlive it.
  SpecialSplitter(const Vocabulary&, Kinds);

  // Longer tokens win over shorter ones wherever they overlap, of equally long ones the lower id, then the
  // left one. About linear in the length of the text.
  std::vector<Fragment> split(std::string_view text) const;

 private:
  const Vocabulary& vocabulary_;
  PrefixTree specials_;
};

}  // namespace gimbal
