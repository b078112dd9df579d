// Merges neighbours until no pair is left: the inner loop of both SentencePiece-style and byte-level BPE. A
// heap keeps it at O(n log n) for words of any length.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace gimbal {

struct Symbol {
  uint32_t begin, size;    // bytes of the word
  int32_t previous, next;  // neighbours, -1 at the ends
  Token token;             // -1: this text is not a token
};

// Reusable: one per call of encode(), so that words share its memory.
class SymbolMerger {
 public:
  struct Merge {
    Token token;  // of both symbols together; -1: they do not merge
    double cost;  // the lowest cost is merged first, the leftmost among equals
  };

  void clear() { symbols_.clear(); }
  // Appends a symbol right after the last one.
  void add(uint32_t begin, uint32_t size, Token token) {
    const int32_t i = int32_t(symbols_.size());
    if (i > 0) symbols_.back().next = i;
    symbols_.push_back({begin, size, i - 1, -1, token});
  }
  // merge_of(left, right) -> Merge. Afterwards calls each(symbol) for the remaining symbols, in order.
  template <class MergeOf, class Each>
  void run(MergeOf&& merge_of, Each&& each);

 private:
  struct Pair {
    double cost;
    int32_t left, right;
    uint32_t size;  // of both when the pair was made; if it changed, the pair is stale
    Token token;
    bool operator<(const Pair& other) const {  // std::*_heap keeps the greatest in front
      return cost != other.cost ? cost > other.cost : left > other.left;
    }
  };
  std::vector<Symbol> symbols_;
  std::vector<Pair> heap_;
};

template <class MergeOf, class Each>
void SymbolMerger::run(MergeOf&& merge_of, Each&& each) {
  heap_.clear();
  const auto offer = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) return false;
    const Symbol &l = symbols_[size_t(left)], &r = symbols_[size_t(right)];
    const Merge merge = merge_of(l, r);
    if (merge.token < 0) return false;
    heap_.push_back({merge.cost, left, right, l.size + r.size, merge.token});
    return true;
  };
  for (int32_t i = 1; i < int32_t(symbols_.size()); ++i) offer(i - 1, i);
  std::make_heap(heap_.begin(), heap_.end());
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Pair pair = heap_.back();
    heap_.pop_back();
    Symbol &left = symbols_[size_t(pair.left)], &right = symbols_[size_t(pair.right)];
    // A symbol that was merged into its left neighbour has size 0.
    if (!left.size || !right.size || left.size + right.size != pair.size) continue;
    left.size += right.size;
    left.token = pair.token;
    left.next = right.next;
    right.size = 0;
    if (left.next >= 0) symbols_[size_t(left.next)].previous = pair.left;
    if (offer(left.previous, pair.left)) std::push_heap(heap_.begin(), heap_.end());
    if (offer(pair.left, left.next)) std::push_heap(heap_.begin(), heap_.end());
  }
  if (symbols_.empty()) return;
  for (int32_t i = 0; i >= 0; i = symbols_[size_t(i)].next) each(symbols_[size_t(i)]);
}

}  // namespace gimbal
