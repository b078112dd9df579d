#include "runtime/nextn_drafter.h"

#include <algorithm>

namespace gimbal {

Result<std::unique_ptr<NextnDrafter>> NextnDrafter::create(Model& model, const DraftHead* head) {
  auto sequence = model.new_sequence();
  if (!sequence) return sequence.error();
  return std::unique_ptr<NextnDrafter>(new NextnDrafter(model, std::move(*sequence), head));
}

NextnDrafter::NextnDrafter(Model& model, std::unique_ptr<Sequence> sequence, const DraftHead* head)
    : model_(model),
      sequence_(std::move(sequence)),
      tokens_(head ? head->tokens : std::vector<int32_t>()),
      name_(head ? head->arch->name : "mtp"),
      stays_(head && head->stays),
      width_(size_t(model.plan().takes_states)) {
  states_.resize(size_t(model.plan().options.batch) * width_);
  if (stays_) row_.resize(width_);
  batch_.rows.reserve(size_t(model.plan().options.batch));
}

void NextnDrafter::computed(std::span<const int32_t> text, int first, std::span<const float> states) {
  int rows = int(states.size() / width_);
  if (std::find(text.begin(), text.end(), kNoToken) != text.end()) {
    count_ = 0;
    return;
  }
  count_ = std::clamp(first - first_, 0, count_);  // later states belong to another text
  if (first_ + count_ != first) count_ = 0;
  if (count_ + rows > room()) {
    const bool prompt = rows > kMaxDrafts + 1;
    if (prompt && count_ && !failed_)
      if (auto ok = follow(text.first(size_t(first) + 1), first - 1, false); !ok) failed_ = ok.error();
    count_ = 0;
  }
  if (!count_) first_ = first;
  if (const int over = std::max(0, rows - room())) first_ += over, rows -= over;
  std::copy(states.end() - std::ptrdiff_t(size_t(rows) * width_), states.end(),
            states_.begin() + std::ptrdiff_t(size_t(count_) * width_));
  count_ += rows;
}

Result<StepOutput> NextnDrafter::step(std::span<const int32_t> tokens, const float* states, bool own,
                                      bool wanted) {
  batch_.rows.clear();
  batch_.states = wanted, batch_.top = 1;
  const bool top = model_.plan().max_top() > 0;
  for (size_t i = 0; i < tokens.size(); i++) {
    const bool asked = wanted && i + 1 == tokens.size();
    batch_.rows.push_back({sequence_.get(),
                           tokens[i],
                           sequence_->computed() + int(i),
                           {.logits = asked && !top, .top = asked && top},
                           states + i * width_});
    batch_.rows.back().own_state = own;
  }
  return model_.forward(batch_);
}

Result<StepOutput> NextnDrafter::follow(std::span<const int32_t> text, int last, bool wanted) {
  const auto held = sequence_->tokens();
  int same = 0;
  while (size_t(same) < held.size() && size_t(begin_ + same) + 1 < text.size() &&
         held[size_t(same)] == text[size_t(begin_ + same) + 1])
    same++;
  same = std::min(same, last - begin_);  // the last row is computed in any case
  // Earlier rows have no state any more: begins at the first state.
  if (same < 0 || begin_ + same < first_ || sequence_->truncate(same) < same)
    sequence_->truncate(0), begin_ = first_, same = 0;
  for (int at = begin_ + same;;) {
    const int rows = std::min(last + 1 - at, model_.plan().options.batch);
    const bool end = at + rows == last + 1;
    auto out = step(text.subspan(size_t(at) + 1, size_t(rows)), &states_[size_t(at - first_) * width_], false,
                    wanted && end);
    if (!out || end) return out;
    at += rows;
  }
}

int32_t NextnDrafter::likeliest(const StepOutput& out) const {
  size_t best;
  if (model_.plan().max_top() > 0) {
    best = size_t(out.top(0).ids[0]);
  } else {
    const auto logits = out.logits(0);
    best = size_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  return tokens_.empty() ? int32_t(best) : tokens_[best];
}

Result<StepOutput> NextnDrafter::again(std::span<const int32_t> guess, const StepOutput& before, int last) {
  const size_t rows = before.states().size() / size_t(model_.plan().width(Output::States));
  const std::span<const float> own = before.state(rows - 1);
  if (!stays_) return step(guess.last(1), own.data(), true, true);
  const float* target = &states_[size_t(last - first_) * width_];
  std::copy(target, target + width_ - own.size(), row_.begin());
  std::copy(own.begin(), own.end(), row_.end() - std::ptrdiff_t(own.size()));
  sequence_->truncate(last - begin_);
  return step(guess.last(1), row_.data(), false, true);
}

Result<std::vector<int32_t>> NextnDrafter::propose(std::span<const int32_t> text, int n) {
  std::vector<int32_t> guess;
  if (failed_) return *failed_;
  const int last = int(text.size()) - 2;  // the next position is not computed yet
  count_ = std::clamp(last + 1 - first_, 0, count_);
  if (count_ == 0 || first_ + count_ != last + 1) return guess;
  n = std::min(n, model_.context() - last);
  if (n <= 0) return guess;
  auto out = follow(text, last, true);
  while (out) {
    guess.push_back(likeliest(*out));
    if (int(guess.size()) == n) break;
    out = again(guess, *out, last);
  }
  if (!out) return out.error();
  sequence_->truncate(last + 1 - begin_);  // guesses were made from guessed states
  if (stays_ && guess.size() > 1) {        // the last position's row had a guess in place of its token
    sequence_->truncate(last - begin_);
    if (auto row = step(text.last(1), &states_[size_t(last - first_) * width_], false, false); !row)
      return row.error();
  }
  return guess;
}

}  // namespace gimbal
