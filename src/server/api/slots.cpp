#include "server/api/slots.h"

namespace gimbal::api {

SlotPtr Slots::take(const std::string& model, uint64_t task, int prompt_tokens, int max_tokens) {
  // Weak: the places refer to their slots, too.
  const auto release = [of = std::weak_ptr(state_), model](Slot* slot) {
    if (const auto state = of.lock(); state && state->keeps) {
      const std::lock_guard lock(state->mutex);
      state->models[model][size_t(slot->number)].last = std::move(slot->text);
    }
    delete slot;
  };
  SlotPtr slot(new Slot, release);
  slot->task = task, slot->prompt_tokens = prompt_tokens, slot->max_tokens = max_tokens;
  const std::lock_guard lock(state_->mutex);
  auto& all = state_->models[model];
  size_t free = 0;
  while (free < all.size() && !all[free].now.expired()) free++;
  slot->number = int(free);
  if (free == all.size()) all.emplace_back();
  all[free].now = slot;
  return slot;
}

std::vector<SlotPtr> Slots::taken(const std::string& model) {
  std::vector<SlotPtr> out;
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->models.find(model);
  if (at == state_->models.end()) return out;
  for (const Place& one : at->second)
    if (SlotPtr slot = one.now.lock()) out.push_back(std::move(slot));
  return out;
}

std::vector<Token> Slots::last_text(const std::string& model, int number) {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->models.find(model);
  if (at == state_->models.end() || size_t(number) >= at->second.size()) return {};
  return at->second[size_t(number)].last;
}

void Slots::set_last_text(const std::string& model, int number, std::vector<Token> text) {
  const std::lock_guard lock(state_->mutex);
  auto& all = state_->models[model];
  if (all.size() <= size_t(number)) all.resize(size_t(number) + 1);
  all[size_t(number)].last = std::move(text);
}

}  // namespace gimbal::api
