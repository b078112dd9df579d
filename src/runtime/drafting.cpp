#include "runtime/drafting.h"

#include <algorithm>
#include <chrono>

#include "runtime/inputs.h"

namespace gimbal {

DraftCounts operator-(const DraftCounts& a, const DraftCounts& b) {
  return {a.steps - b.steps, a.tokens - b.tokens, a.drafted - b.drafted, a.accepted - b.accepted,
          a.seconds - b.seconds};
}

Status Drafting::end(const Error& why) {
  ended_ = true;
  if (failed_) verdict_ = failed_(why);
  return verdict_;
}

Status Drafting::begin(std::span<const int32_t> text) {
  guess_.clear(), begun_ = true;
  if (ended_) return verdict_;
  auto ok = drafter_->read(text);
  return ok ? ok : end(ok.error());
}

// Compares the last guess with the text, as soon as the result is certain.
void Drafting::compare(std::span<const int32_t> text) {
  if (guess_.empty()) return;
  const auto there = text.subspan(std::min(at_, text.size()));
  const size_t most = std::min(there.size(), guess_.size());
  size_t right = 0;
  while (right < most && there[right] == guess_[right]) right++;
  if (right == most && most < guess_.size()) return;
  length_.compared(int(std::min(right + 1, guess_.size())), int(right));
  guess_.clear();
}

Status Drafting::guess(std::span<const int32_t> text, int n) {
  const auto begin = std::chrono::steady_clock::now();
  auto made = drafter_->propose(text, n);
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  counts_.seconds += seconds_;
  if (!made) return end(made.error());
  guess_ = std::move(*made), at_ = text.size();
  if (guess_.size() > size_t(n)) guess_.resize(size_t(n));
  // An embedding in the text cannot be a guess.
  guess_.erase(std::find(guess_.begin(), guess_.end(), kNoToken), guess_.end());
  return Done{};
}

Result<std::span<const int32_t>> Drafting::propose(std::span<const int32_t> text, int most,
                                                   const BatchLoad& load) {
  drafted_ = 0, seconds_ = 0;
  compare(text);
  Status ok = ended_ ? verdict_ : Done{};
  const int n = ended_ ? 0 : adapts_ ? length_.next(most, load) : most;
  if (n > 0) {
    ok = guess(text, n);
    drafted_ = guess_.size();
  } else if (!ended_ && guess_.empty() && length_.costs().guesses_are_free()) {
    // Free guesses are compared, too: they show how often drafts would be right.
    ok = guess(text, length_.costs().guesses_are_known() ? kMaxDrafts : 1);
  }
  if (!ok) return ok.error();
  return std::span<const int32_t>(guess_).first(drafted_);
}

void Drafting::emitted(int tokens) {
  counts_.steps++, counts_.tokens += uint64_t(tokens);
  counts_.drafted += drafted_, counts_.accepted += drafted_ ? uint64_t(tokens - 1) : 0;
}

void Drafting::computed(int rows, int tokens, double seconds) {
  emitted(tokens);
  length_.costs().took({rows, tokens, guessed(), seconds, seconds_});
}

}  // namespace gimbal
