// Sequences without a model: what becomes of their tokens and pages.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "runtime/sequence.h"

namespace gimbal::test {

// Appends tokens in steps of `rows`, as a model would. False: there are too few pages.
inline bool grow(SequencePool& pool, Sequence& s, std::span<const int32_t> tokens, size_t rows = 64) {
  for (size_t at = 0; at < tokens.size(); at += rows) {
    pool.begin();
    std::vector<InputItem> items;
    for (const int32_t t : tokens.subspan(at, std::min(rows, tokens.size() - at))) {
      pool.add_row(s);
      items.push_back({t});
    }
    if (!pool.take_pages()) return false;
    pool.commit(items);
  }
  return true;
}
// Of `n` tokens: from, from + 1, ...
inline std::vector<int32_t> counting(int n, int from = 0) {
  std::vector<int32_t> all;
  for (int i = 0; i < n; i++) all.push_back(from + i);
  return all;
}

}  // namespace gimbal::test
