#include "runtime/ngram_drafter.h"

#include <algorithm>

namespace gimbal {

Result<std::vector<int32_t>> NgramDrafter::propose(std::span<const int32_t> text, int n) {
  std::vector<int32_t> guess;
  if (n <= 0) return guess;
  // `end`: the end of an earlier occurrence; the token there is the first guess.
  size_t best = 0, found = 0;
  for (size_t end = text.size() - !text.empty(); end > best && best < kLongest; end--) {
    size_t same = 0;
    const size_t most = std::min(end, kLongest);
    while (same < most && text[end - 1 - same] == text[text.size() - 1 - same]) same++;
    if (same > best) best = same, found = end;
  }
  if (best < kLeast) return guess;
  for (size_t i = found; guess.size() < size_t(n); i++)
    guess.push_back(i < text.size() ? text[i] : guess[i - text.size()]);
  return guess;
}

}  // namespace gimbal
