#include "runtime/reasoning_limit.h"

#include <algorithm>

namespace gimbal {

ReasoningLimiter::ReasoningLimiter(ReasoningLimit limit, const Tokenizer* tokenizer)
    : limit_(std::move(limit)),
      tokenizer_(tokenizer),
      state_(limit_.tokens < 0 || !tokenizer ? State::After
             : limit_.inside                 ? State::Inside
                                             : State::Before) {
  check();
}

std::optional<Token> ReasoningLimiter::forced() const {
  if (put_ >= finish_.size()) return std::nullopt;
  return finish_[put_];
}

void ReasoningLimiter::check() {
  if (state_ == State::Inside && count_ >= limit_.tokens)
    finish_ = tokenizer_->encode(limit_.finish, {.add_bos = false, .parse_special = true});
}

void ReasoningLimiter::take(Token token) {
  if (state_ == State::After) return;
  if (!finish_.empty()) {
    if (++put_ == finish_.size()) state_ = State::After;
    return;
  }
  tail_ += tokenizer_->piece(token, true);
  if (state_ == State::Before) {  // it is only at the very beginning
    tail_.erase(0, std::min(tail_.find_first_not_of(" \n"), tail_.size()));
    if (tail_.starts_with(limit_.begin)) state_ = State::Inside, tail_.clear();
    else if (!limit_.begin.starts_with(tail_)) state_ = State::After;
  } else {
    count_++;
    if (tail_.find(limit_.end) != tail_.npos) state_ = State::After;
    else if (tail_.size() >= limit_.end.size()) tail_.erase(0, tail_.size() - limit_.end.size() + 1);
  }
  check();
}

}  // namespace gimbal
