// hot: every pair of symbols
// Building and searching the table of merge rules.
#include "tokenizer/merge_table.h"

#include <bit>
#include <string>

namespace gimbal {

MergeTable::MergeTable(const std::vector<std::string_view>& rules, const Vocabulary& vocabulary) {
  slots_.resize(std::bit_ceil(rules.size() * 2 + 1));
  std::string joined;
  for (size_t rank = 0; rank < rules.size(); ++rank) {
    const std::string_view rule = rules[rank];
    Token left = -1, right = -1, token = -1;
    // A part may hold spaces itself: the gap is the first one between two tokens.
    for (size_t gap = rule.find(' ', 1); token < 0 && gap != rule.npos && gap + 1 < rule.size();
         gap = rule.find(' ', gap + 1)) {
      left = vocabulary.find_plain(rule.substr(0, gap));
      right = left < 0 ? -1 : vocabulary.find_plain(rule.substr(gap + 1));
      if (right >= 0) token = vocabulary.find_plain(joined.assign(rule, 0, gap).append(rule, gap + 1));
    }
    if (token < 0) continue;
    Slot& slot = slots_[slot_of(left, right)];
    if (slot.left >= 0) continue;
    slot = {left, right, {int32_t(rank), token}};
    ++used_;
  }
}

size_t MergeTable::slot_of(Token left, Token right) const {
  const size_t mask = slots_.size() - 1;
  uint64_t h = (uint64_t(uint32_t(left)) << 32 | uint32_t(right)) * 0x9e3779b97f4a7c15;
  h ^= h >> 32;
  for (size_t i = h & mask;; i = (i + 1) & mask)
    if (slots_[i].left < 0 || (slots_[i].left == left && slots_[i].right == right)) return i;
}

MergeTable::Merge MergeTable::find(Token left, Token right) const {
  if (left < 0 || right < 0) return {0, -1};
  return slots_[slot_of(left, right)].merge;
}

}  // namespace gimbal
