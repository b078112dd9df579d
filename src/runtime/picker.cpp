#include "runtime/picker.h"

#include <algorithm>
#include <chrono>

namespace gimbal {

Picker::Picker(Session& session, const SamplerSettings& sampler, const Recover& recover, Drafting* drafting,
               std::span<const int32_t> prompt, Constraint* constraint)
    : session_(session),
      sampler_(sampler),
      recover_(recover),
      drafting_(drafting),
      constraint_(constraint),
      text_(session.tokens().begin(), session.tokens().end()),
      begin_(text_.size()),
      position_(session.position()) {
  text_.insert(text_.end(), prompt.begin(), prompt.end());
  session_.watch(drafting_ ? drafting_->watcher() : nullptr);
}

Picker::~Picker() {
  session_.watch(nullptr);
  if (session_.position() > position_) session_.rewind(position_);
}

// A pick behind row `index`, unless the row is a draft, or behind one, that was not picked.
template <class Pick>
void Picker::pick(size_t index, Pick pick) {
  const size_t first = rows_.size() - drafts_ - 1;
  if (index < first || picks_.size() != index - first) return;
  if (index > first && (!picks_.back() || *picks_.back() != rows_[index])) return;
  picks_.push_back(pick());
  if (picks_.back()) text_.push_back(*picks_.back());
}

Result<int32_t> Picker::pick_top(const TopLogits& top, size_t row) {
  auto chosen = sampler_.pick_top(top.logits, top.ids);
  if (!chosen) return chosen.error();
  if (*chosen) return **chosen;
  auto all = session_.all_logits(row);  // pick() knows what is wrong with them
  if (!all) return all.error();
  return sampler_.pick(*all, {});
}

Result<int32_t> Picker::pick_any(std::span<const float> logits) {
  const auto history = std::span(text_).subspan(begin_);
  if (!constraint_) return sampler_.pick(logits, history);
  const auto allowed = constraint_->allowed();
  if (!allowed) return allowed.error();
  auto picked = sampler_.pick(logits, history, *allowed);
  if (!picked) return picked;
  if (auto ok = constraint_->accept(*picked); !ok) return ok.error();
  return picked;
}

Status Picker::compute_once(std::span<const int32_t> tokens, Session::Wanted wanted) {
  const size_t skipped = rows_.size() - tokens.size();  // computed before the device was lost
  // Where a few of the logits are all that sampling looks at, only they come from the device.
  const int leading = constraint_ ? 0 : sampler_.leading();
  if (wanted != Session::Wanted::None && leading && leading <= session_.max_top())
    return session_.advance_top(tokens, leading, wanted, [&](size_t i, const TopLogits& top, size_t row) {
      pick(skipped + i, [&] { return pick_top(top, row); });
    });
  return session_.advance(tokens, wanted, [&](size_t i, std::span<const float> logits) {
    pick(skipped + i, [&] { return pick_any(logits); });
  });
}

Status Picker::compute(std::span<const int32_t> tokens, Session::Wanted wanted) {
  const int before = session_.position();
  auto ok = compute_once(tokens, wanted);
  if (ok || ok.error().code != Code::DeviceLost || !recover_) return ok;
  moved_ = true;
  if (auto moved = recover_(session_, ok.error()); !moved) return moved;
  return compute_once(tokens.subspan(size_t(session_.position() - before)), wanted);
}

Status Picker::read(std::span<const int32_t> tokens, bool last) {
  rows_.assign(tokens.begin(), tokens.end());
  drafts_ = 0, at_ = 0;
  picks_.clear();
  auto ok = compute(tokens, last ? Session::Wanted::Last : Session::Wanted::None);
  position_ = session_.position();
  if (ok && last && drafting_) return drafting_->begin(std::span(text_).first(size_t(position_)));
  return ok;
}

Status Picker::go_on(int most) {
  position_++;
  if (++at_ < picks_.size()) return Done{};
  const int before = session_.position(), again = session_.missing();
  rows_.assign(1, text_.back());
  picks_.clear(), at_ = 0, drafts_ = 0, moved_ = false;
  if (drafting_) {
    const int at_once =
        std::min({session_.results_at_once(), session_.model().plan().options.drafts + 1, most});
    const auto drafts = drafting_->propose(text_, at_once - 1, {.rows = again});
    if (!drafts) return drafts.error();
    rows_.insert(rows_.end(), drafts->begin(), drafts->end());
    drafts_ = drafts->size();
    if (drafts_) session_.mark();
  }
  const auto begin = std::chrono::steady_clock::now();
  if (auto ok = compute(rows_, drafts_ ? Session::Wanted::All : Session::Wanted::Last); !ok) return ok;
  session_.rewind(before + int(picks_.size()));
  if (drafting_ && !moved_) {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    drafting_->computed(again + int(rows_.size()), int(picks_.size()), taken.count());
  }
  return Done{};
}

}  // namespace gimbal
