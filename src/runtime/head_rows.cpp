#include "runtime/head_rows.h"

#include <algorithm>
#include <numeric>

namespace gimbal {

Result<HeadRows> HeadRows::create(Model& model, const DraftHead* head, int ahead) {
  auto sequence = model.new_sequence();
  if (!sequence) return sequence.error();
  return HeadRows(model, std::move(*sequence), head, ahead);
}

HeadRows::HeadRows(Model& model, std::unique_ptr<Sequence> sequence, const DraftHead* head, int ahead)
    : model_(&model),
      sequence_(std::move(sequence)),
      tokens_(head ? head->tokens : std::vector<int32_t>()),
      ahead_(ahead),
      top_(model.plan().max_top() > 0),
      width_(size_t(model.plan().takes_states)) {
  states_.resize(size_t(model.plan().options.batch) * width_);
  batch_.rows.reserve(size_t(model.plan().options.batch));
  batch_.top = 1;
}

void HeadRows::computed(std::span<const int32_t> text, int first, std::span<const float> states) {
  int rows = int(states.size() / width_);
  if (std::find(text.begin(), text.end(), kNoToken) != text.end()) {
    count_ = 0;
    return;
  }
  count_ = std::clamp(first - first_, 0, count_);  // later states belong to another text
  if (first_ + count_ != first) count_ = 0;
  if (count_ + rows > room()) {
    const bool prompt = rows > kMaxDrafts + 1;
    if (prompt && count_ && !failed_) {
      auto ok = follow(text.first(size_t(first - 1 + ahead_) + 1), first - 1, 1, 0);
      if (ok)
        if (auto out = model_->forward(batch_); !out) ok = out.error();
      if (!ok) failed_ = ok.error();
    }
    count_ = 0;
  }
  if (!count_) first_ = first;
  if (const int over = std::max(0, rows - room())) first_ += over, rows -= over;
  std::copy(states.end() - std::ptrdiff_t(size_t(rows) * width_), states.end(),
            states_.begin() + std::ptrdiff_t(size_t(count_) * width_));
  count_ += rows;
}

Result<bool> HeadRows::ends_at(int last) {
  if (failed_) return *failed_;
  count_ = std::clamp(last + 1 - first_, 0, count_);
  return count_ > 0 && first_ + count_ == last + 1;
}

void HeadRows::add(std::span<const int32_t> text, int from, int rows) {
  batch_.rows.clear(), batch_.states = false;
  for (int i = 0; i < rows; i++)
    batch_.rows.push_back(
        {sequence_.get(), text[size_t(from + i + ahead_)], sequence_->computed() + i, {}, state(from + i)});
}

Status HeadRows::follow(std::span<const int32_t> text, int last, int kept, int spare) {
  const auto held = sequence_->tokens();
  int same = 0;
  while (size_t(same) < held.size() && size_t(begin_ + same + ahead_) < text.size() &&
         held[size_t(same)] == text[size_t(begin_ + same + ahead_)])
    same++;
  same = std::min(same, last + 1 - kept - begin_);
  // Earlier rows have no state any more: begins at the first state.
  if (same < 0 || begin_ + same < first_ || sequence_->truncate(same) < same)
    sequence_->truncate(0), begin_ = first_, same = 0;
  const int batch = model_->plan().options.batch;
  for (int at = begin_ + same;;) {
    const int left = last + 1 - at;
    if (left + spare <= batch) {
      add(text, at, left);
      return Done{};
    }
    const int rows = std::min(batch, left - kept);
    add(text, at, rows);
    if (auto out = model_->forward(batch_); !out) return out.error();
    at += rows;
  }
}

int32_t HeadRows::likeliest(const StepOutput& out, size_t k) const {
  size_t best;
  if (top_) {
    best = size_t(out.top(k).ids[0]);
  } else {
    const auto logits = out.logits(k);
    best = size_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  return token_of(best);
}

Result<int32_t> HeadRows::likeliest(const StepOutput& out, size_t k, const MarkovHead& markov,
                                    int32_t before) const {
  std::vector<int32_t> ids;
  std::vector<float> values;
  if (top_) {
    const TopLogits top = out.top(k);
    for (size_t i = 0; i < top.ids.size() && top.ids[i] >= 0; i++)
      ids.push_back(int32_t(top.ids[i])), values.push_back(top.logits[i]);
  } else {
    const auto logits = out.logits(k);
    ids.resize(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    const size_t n = std::min(ids.size(), size_t(kCandidates));
    std::partial_sort(ids.begin(), ids.begin() + std::ptrdiff_t(n), ids.end(), [&](int32_t a, int32_t b) {
      return std::pair(-logits[size_t(a)], a) < std::pair(-logits[size_t(b)], b);
    });
    ids.resize(n);
    for (int32_t id : ids) values.push_back(logits[size_t(id)]);
  }
  if (auto ok = markov.add(before, ids, values); !ok) return ok.error();
  return token_of(size_t(ids[size_t(std::max_element(values.begin(), values.end()) - values.begin())]));
}

}  // namespace gimbal
