#include "runtime/model_drafter.h"

#include <algorithm>

namespace gimbal {

bool ModelDrafter::knows(std::span<const int32_t> text) const {
  const Model& m = session_->model();
  return int(text.size()) < m.context() && std::all_of(text.begin(), text.end(), [&](int32_t t) {
           return t >= 0 && t < m.config().vocabulary;
         });
}

Status ModelDrafter::read(std::span<const int32_t> text) {
  if (text.empty() || !knows(text)) return Done{};
  const auto held = size_t(session_->keep_common(text));
  return session_->advance(text.subspan(held), Session::Wanted::None, {});
}

Result<int32_t> ModelDrafter::next(std::span<const int32_t> tokens) {
  if (session_->max_top() > 0) {
    auto top = session_->advance_top(tokens, 1);
    if (!top) return top.error();
    return int32_t(top->ids[0]);
  }
  int32_t best = 0;
  auto ok = session_->advance(tokens, Session::Wanted::Last, [&](size_t, std::span<const float> logits) {
    best = int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
  });
  if (!ok) return ok.error();
  return best;
}

Result<std::vector<int32_t>> ModelDrafter::propose(std::span<const int32_t> text, int n) {
  std::vector<int32_t> guess;
  if (text.empty() || !knows(text)) return guess;
  n = std::min(n, session_->model().context() - int(text.size()) + 1);
  session_->keep_common(text);
  while (int(guess.size()) < n) {
    // The first step computes the new tokens of the text, each further one the previous guess.
    const auto at = size_t(session_->position());
    const auto tokens = guess.empty() ? text.subspan(at) : std::span(guess).last(1);
    auto token = next(tokens);
    if (!token) return token.error();
    if (guess.empty()) session_->mark();
    guess.push_back(*token);
  }
  return guess;
}

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
