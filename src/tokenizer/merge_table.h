// The merge rules of a BPE vocabulary as one flat hash table over pairs of token ids.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace gimbal {

class MergeTable {
 public:
  // `rules` as in tokenizer.ggml.merges: "left right", highest priority first. Skips a rule that is not a
  // pair, or whose parts or result are not tokens of plain text, since it can never apply; of equal rules the
  // first counts.
  MergeTable(const std::vector<std::string_view>& rules, const Vocabulary&);

  struct Merge {
    int32_t rank;
    Token token;  // -1: no such rule
  };
  Merge find(Token left, Token right) const;
  size_t size() const { return used_; }

 private:
  struct Slot {
    Token left = -1, right = -1;
    Merge merge{0, -1};
  };
  size_t slot_of(Token left, Token right) const;  // slot of the pair, or the free one for it
  std::vector<Slot> slots_;                       // open addressing, a power of two, at most half full
  size_t used_ = 0;
};

}  // namespace gimbal
