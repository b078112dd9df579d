// Finds special tokens that are written out in a text, before anything else looks at the text.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

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
    UserDefined,  // what is recognised even where special text counts as plain text
  };
  // Keeps views into the vocabulary, which must outlive it.
  SpecialSplitter(const Vocabulary&, Kinds);

  // Longer tokens win over shorter ones wherever they overlap, of equally long ones the lower id, then the
  // left one. About linear in the length of the text.
  std::vector<Fragment> split(std::string_view text) const;

 private:
  struct Special {
    std::string_view text;
    Token id;
    bool strips_right;
    int32_t shorter;  // the longest other special that this one begins with, or -1
  };
  int longest_at(std::string_view text, size_t at) const;  // index into specials_, or -1

  std::vector<Special> specials_;      // sorted by text
  std::array<uint32_t, 257> first_{};  // specials_ that begin with byte b: [first_[b], first_[b + 1])
};

}  // namespace gimbal
