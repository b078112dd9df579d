// Notices that a text repeats itself, as small models do until the context is full.
#pragma once
#include <algorithm>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace gimbal {

// Looks on only: no token is drawn otherwise. push() is true when the last tokens are the same passage four
// times or more, together 80 tokens or more: no list or table of an answer comes near to that.
class RepetitionGuard {
 public:
  bool push(Token token) {
    tokens_.push_back(token);
    const size_t n = tokens_.size();
    for (size_t period = 1; period <= std::min(kLongest, n - 1); period++) {
      int& same = same_[period];  // tokens in a row that equal the one a period before
      same = tokens_[n - 1 - period] == token ? same + 1 : 0;
      if (same >= 3 * int(period) && same + int(period) >= kLeast) return true;
    }
    return false;
  }

 private:
  static constexpr size_t kLongest = 200;  // tokens of a passage
  static constexpr int kLeast = 80;
  std::vector<Token> tokens_;
  std::vector<int> same_ = std::vector<int>(kLongest + 1, 0);
};

}  // namespace gimbal
