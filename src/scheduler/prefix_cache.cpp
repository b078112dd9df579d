#include "scheduler/prefix_cache.h"

#include <algorithm>

namespace gimbal {
namespace {

// Whether `a` can replace `b` for every text that continues b.
bool covers(const Sequence& a, const Sequence& b) {
  const Inputs& text = b.inputs();
  return common_prefix(a.inputs(), text) == text.size() && a.keeps(int(text.size())) == int(text.size());
}

}  // namespace

void PrefixCache::keep(std::unique_ptr<Sequence> s) {
  s->truncate(s->computed());  // tokens without state are of no use
  if (s->computed() == 0) return;
  for (size_t i = kept_.size(); i-- > 0;) {
    if (covers(*s, *kept_[i])) {
      kept_.erase(kept_.begin() + ptrdiff_t(i));
    } else if (covers(*kept_[i], *s)) {
      used(kept_[i].get());
      return;
    }
  }
  kept_.push_back(std::move(s));
}

PrefixCache::Found PrefixCache::find(const InputView& text) const {
  Found best;
  for (size_t i = kept_.size(); i-- > 0;) {
    const int tokens = kept_[i]->keeps(int(common_prefix(kept_[i]->inputs(), text)));
    if (tokens > best.tokens) best = {kept_[i].get(), tokens};
  }
  return best;
}

void PrefixCache::used(const Sequence* s) {
  if (auto taken = take(s)) kept_.push_back(std::move(taken));
}

std::unique_ptr<Sequence> PrefixCache::take(const Sequence* s) {
  for (size_t i = 0; i < kept_.size(); i++) {
    if (kept_[i].get() != s) continue;
    auto taken = std::move(kept_[i]);
    kept_.erase(kept_.begin() + ptrdiff_t(i));
    return taken;
  }
  return nullptr;
}

size_t PrefixCache::oldest(const Sequence* but) const {
  size_t i = 0;
  while (i < kept_.size() && kept_[i].get() == but) i++;
  return i;
}

bool PrefixCache::drop(const Sequence* but) {
  const size_t i = oldest(but);
  if (i == kept_.size()) return false;
  kept_.erase(kept_.begin() + ptrdiff_t(i));
  return true;
}

bool PrefixCache::shrink(const Sequence* but) {
  const size_t i = oldest(but);
  if (i == kept_.size()) return false;
  Sequence& s = *kept_[i];
  // A recurrent state returns further, to a checkpoint.
  s.truncate(s.truncate((s.computed() - 1) / kPagePositions * kPagePositions));
  if (s.computed() == 0) kept_.erase(kept_.begin() + ptrdiff_t(i));
  return true;
}

}  // namespace gimbal
