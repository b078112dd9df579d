#include "runtime/sequence.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace gimbal {
namespace {

size_t pages_for(int positions) { return size_t(positions + kPagePositions - 1) / kPagePositions; }

}  // namespace

// ---- a sequence

Sequence::~Sequence() {
  truncate(0);
  pool_.live_--;
}

Result<std::unique_ptr<Sequence>> Sequence::fork() const {
  auto made = pool_.create();
  if (!made) return made;
  Sequence& s = **made;
  s.inputs_.assign(inputs_);
  s.computed_ = computed_;
  for (size_t p = 0; p < held_.size(); p++) {
    const Held& from = held_[p];
    Held& to = s.held_[p];
    to.pages.assign(from.pages.begin(), from.pages.end());
    to.first = from.first;
    to.checkpoints.assign(from.checkpoints.begin(), from.checkpoints.end());
    for (int32_t page : to.pages)
      if (page != kNoPage) pool_.pages_[p].share(page);
    for (const Checkpoint& c : to.checkpoints) pool_.pages_[p].share(c.page);
  }
  return made;
}

Status Sequence::adapt(std::span<const float> scales) {
  if (std::ranges::equal(inputs_.adapters(), scales)) return Done{};
  if (!inputs_.empty())
    return Error{
        Code::Usage,
        format("the sequence holds {} tokens that were computed with other scales of the LoRA adapters",
               inputs_.size()),
        "use an empty sequence", reason::kOutOfRange, "adapters"};
  inputs_.adapt(scales);
  return Done{};
}

int Sequence::kept(int position, bool lost) const {
  for (int before = -1; before != position;) {
    before = position;
    for (size_t p = 0; p < held_.size(); p++) {
      const Held& h = held_[p];
      if (pool_.pools_[p].kind == StateKind::Recurrent) {
        if (position == computed_ && !lost) continue;
        int best = 0;
        for (const Checkpoint& c : h.checkpoints)
          if (c.position <= position) best = c.position;
        if (h.mark.position <= position) best = std::max(best, h.mark.position);
        position = best;
      } else if (h.first * kPagePositions > size_t(window_begin(pool_.pools_[p], position))) {
        position = 0;
      }
    }
  }
  return position;
}

void Sequence::give_back(int position, bool lost) {
  for (size_t p = 0; p < held_.size(); p++) {
    Held& h = held_[p];
    PagePool& pages = pool_.pages_[p];
    const bool recurrent = pool_.pools_[p].kind == StateKind::Recurrent;
    const bool current = position == computed_ && position > 0 && !lost;
    const size_t keep = recurrent ? current : pages_for(position);
    while (h.pages.size() > keep) {
      if (h.pages.back() != kNoPage) pages.release(h.pages.back());
      h.pages.pop_back();
    }
    if (position == 0) h.first = 0;
    while (!h.checkpoints.empty() && h.checkpoints.back().position > position) {
      pages.release(h.checkpoints.back().page);
      h.checkpoints.pop_back();
    }
    if (h.mark.position > position) pages.release(std::exchange(h.mark, {-1, kNoPage}).page);
    if (recurrent && position > 0 && h.pages.empty()) {
      h.pages.push_back(h.mark.position == position ? h.mark.page : h.checkpoints.back().page);
      pages.share(h.pages.back());
    }
  }
  computed_ = position;
}

int Sequence::truncate(int length) {
  length = std::clamp(length, 0, int(inputs_.size()));
  inputs_.resize(size_t(length));
  if (length < computed_) give_back(kept(length, false));
  return computed_;
}

void Sequence::checkpoint() {
  for (size_t p = 0; p < held_.size(); p++) {
    Held& h = held_[p];
    if (pool_.pools_[p].kind != StateKind::Recurrent || h.pages.empty()) continue;
    if (!h.checkpoints.empty() && h.checkpoints.back().position == computed_) continue;
    if (h.checkpoints.size() == kMaxCheckpoints) {
      pool_.pages_[p].release(h.checkpoints.front().page);
      h.checkpoints.erase(h.checkpoints.begin());
    }
    h.checkpoints.push_back({computed_, h.pages[0]});
    pool_.pages_[p].share(h.pages[0]);
  }
}

void Sequence::mark() {
  for (size_t p = 0; p < held_.size(); p++) {
    Held& h = held_[p];
    if (pool_.pools_[p].kind != StateKind::Recurrent || h.pages.empty()) continue;
    if (h.mark.position == computed_) continue;
    if (h.mark.position >= 0) pool_.pages_[p].release(h.mark.page);
    h.mark = {computed_, h.pages[0]};
    pool_.pages_[p].share(h.mark.page);
  }
}

// ---- all of them

SequencePool::SequencePool(std::vector<StatePool> pools, int sequences, int context, int batch)
    : pools_(std::move(pools)), sequences_(sequences), context_(context) {
  for (const StatePool& p : pools_) pages_.emplace_back(p.pages);
  const auto most = size_t(std::min(sequences, batch));
  growth_.reserve(most), row_of_.reserve(size_t(batch));
  copies_.reserve(most * pools_.size()), replaced_.reserve(most * pools_.size());
}

Result<std::unique_ptr<Sequence>> SequencePool::create() {
  if (live_ == sequences_)
    return Error{Code::OutOfMemory,
                 format("all {} conversations that this model was loaded for are in use", sequences_), ""};
  live_++;
  std::unique_ptr<Sequence> s(new Sequence(*this));
  s->inputs_.reserve(size_t(context_));
  s->held_.resize(pools_.size());
  for (size_t p = 0; p < pools_.size(); p++) {
    s->held_[p].pages.reserve(size_t(pools_[p].table));
    if (pools_[p].kind == StateKind::Recurrent) s->held_[p].checkpoints.reserve(kMaxCheckpoints);
  }
  return s;
}

Status SequencePool::adopt(Sequence& s, const InputView& inputs, std::span<const uint32_t> first) {
  const auto n = int(inputs.size());
  bool fits = s.inputs_.empty() && n > 0 && n <= context_ && first.size() == pools_.size();
  for (size_t p = 0; fits && p < pools_.size(); p++)
    fits = size_t(first[p]) * kPagePositions <= size_t(window_begin(pools_[p], n));
  if (!fits) return Error{Code::Malformed, "no sequence of this model has such tokens and pages", ""};
  for (size_t p = 0; p < pools_.size(); p++) {
    Sequence::Held& h = s.held_[p];
    h.pages.assign(first[p], Sequence::kNoPage);
    h.first = first[p];
    const size_t needed = pools_[p].kind == StateKind::Recurrent ? 1 : pages_for(n);
    while (h.pages.size() < needed) {
      const auto page = pages_[p].take();
      if (!page) {
        s.give_back(0);
        return Error{Code::OutOfMemory, "too few pages of the KV cache are free", ""};
      }
      h.pages.push_back(*page);
    }
  }
  s.inputs_.append(inputs);
  s.computed_ = n;
  return Done{};
}

void SequencePool::begin() {
  for (const Growth& g : growth_) g.sequence->in_step_ = -1;
  growth_.clear(), row_of_.clear(), copies_.clear(), replaced_.clear();
}

int SequencePool::add_row(Sequence& s) {
  if (s.in_step_ < 0) s.in_step_ = int(growth_.size()), growth_.push_back({&s, 0});
  growth_[size_t(s.in_step_)].rows++;
  row_of_.push_back(s.in_step_);
  return s.in_step_;
}

Status SequencePool::take_pages() {
  for (const Growth& g : growth_) {
    Sequence& s = *g.sequence;
    for (size_t p = 0; p < pools_.size(); p++) {
      const auto& checkpoints = s.held_[p].checkpoints;
      if (pools_[p].kind == StateKind::Recurrent &&
          s.computed_ - (checkpoints.empty() ? 0 : checkpoints.back().position) >= kCheckpointEvery)
        s.checkpoint();
      leave_window(s, p);
      if (take_pages(s, g.rows, p)) continue;
      roll_back(false);
      return Error{Code::OutOfMemory,
                   format("the KV cache is full: its {} pages of {} positions are in use", pools_[p].pages,
                          kPagePositions),
                   "end a conversation, or load the model with a larger cache"};
    }
  }
  return Done{};
}

int SequencePool::pages_wanted(const Sequence& s, int rows, size_t pool) const {
  const std::vector<int32_t>& held = s.held_[pool].pages;
  const bool recurrent = pools_[pool].kind == StateKind::Recurrent;
  const bool begun = recurrent ? !held.empty() : s.computed_ % kPagePositions != 0;
  const auto needed = int(recurrent ? 1 : pages_for(s.computed_ + rows));
  return (begun && pages_[pool].users(held.back()) > 1) + std::max(0, needed - int(held.size()));
}

// Returns the pages that no later row attends to.
void SequencePool::leave_window(Sequence& s, size_t pool) {
  if (!pools_[pool].window) return;
  Sequence::Held& h = s.held_[pool];
  const size_t begin = size_t(std::max(0, window_begin(pools_[pool], s.computed_) - kWindowSlack));
  for (; h.first < h.pages.size() && (h.first + 1) * kPagePositions <= begin; h.first++) {
    pages_[pool].release(h.pages[h.first]);
    h.pages[h.first] = Sequence::kNoPage;
  }
}

// Returns false if too few are free; roll_back() then returns the pages taken so far.
bool SequencePool::take_pages(Sequence& s, int rows, size_t pool) {
  Sequence::Held& h = s.held_[pool];
  const bool recurrent = pools_[pool].kind == StateKind::Recurrent;
  const size_t needed = recurrent ? 1 : pages_for(s.computed_ + rows);
  // Rows continue in a partly filled page: the only one that may be shared.
  const bool begun = recurrent ? !h.pages.empty() : s.computed_ % kPagePositions != 0;
  if (begun && !unshare(s, pool, h.pages.size() - 1)) return false;
  while (h.pages.size() < needed) {
    const auto page = pages_[pool].take();
    if (!page) return false;
    h.pages.push_back(*page);
    if (recurrent) copies_.push_back({pool, -1, *page}), replaced_.push_back({&s, 0});
  }
  return true;
}

bool SequencePool::unshare(Sequence& s, size_t pool, size_t index) {
  int32_t& page = s.held_[pool].pages[index];
  if (pages_[pool].users(page) == 1) return true;
  const auto copy = pages_[pool].take();
  if (!copy) return false;
  pages_[pool].release(page);
  copies_.push_back({pool, page, *copy}), replaced_.push_back({&s, index});
  page = *copy;
  return true;
}

void SequencePool::commit(std::span<const InputItem> of_rows) {
  for (size_t row = 0; row < row_of_.size(); row++) {
    Sequence& s = *growth_[size_t(row_of_[row])].sequence;
    s.inputs_.set(size_t(s.computed_), of_rows[row]);  // a no-op for inputs computed again
    s.computed_++;
  }
  begin();
}

void SequencePool::roll_back(bool begun) {
  for (size_t i = copies_.size(); i-- > 0;) {
    const PageCopy& c = copies_[i];
    if (c.from < 0) continue;  // a new page: returned below
    int32_t& page = replaced_[i].sequence->held_[c.pool].pages[replaced_[i].index];
    pages_[c.pool].release(page);
    pages_[c.pool].share(c.from);
    page = c.from;
  }
  for (const Growth& g : growth_) {
    Sequence& s = *g.sequence;
    s.give_back(begun ? s.kept(s.computed_, true) : s.computed_, begun);
  }
  begin();
}

}  // namespace gimbal
