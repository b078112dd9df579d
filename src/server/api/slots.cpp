#include "server/api/slots.h"

namespace gimbal::api {

SlotPtr Slots::take(const std::string& model, uint64_t task, int prompt_tokens, int max_tokens) {
  auto slot = std::make_shared<Slot>();
  slot->task = task, slot->prompt_tokens = prompt_tokens, slot->max_tokens = max_tokens;
  const std::lock_guard lock(mutex_);
  auto& all = models_[model];
  size_t free = 0;
  while (free < all.size() && !all[free].expired()) free++;
  slot->number = int(free);
  if (free == all.size()) all.push_back(slot);
  else all[free] = slot;
  return slot;
}

std::vector<SlotPtr> Slots::taken(const std::string& model) {
  std::vector<SlotPtr> out;
  const std::lock_guard lock(mutex_);
  const auto at = models_.find(model);
  if (at == models_.end()) return out;
  for (const std::weak_ptr<Slot>& one : at->second)
    if (SlotPtr slot = one.lock()) out.push_back(std::move(slot));
  return out;
}

}  // namespace gimbal::api
