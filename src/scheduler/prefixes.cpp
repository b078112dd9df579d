// Prefixes of earlier requests, for files that outlive the server.
#include "scheduler/scheduler.h"

namespace gimbal {

Result<int> Scheduler::use_prefix(const InputView& text, const std::function<Status(const Sequence&)>& use) {
  const PrefixCache::Found found = kept_.find(text);
  if (found.tokens == 0) return 0;
  auto fork = found.sequence->fork();
  while (!fork && fork.error().code == Code::OutOfMemory && kept_.drop(found.sequence))
    fork = found.sequence->fork();
  if (!fork) return fork.error();
  const int tokens = (*fork)->truncate(found.tokens);
  (*fork)->truncate(tokens);
  if (tokens == 0) return 0;
  if (auto ok = use(**fork); !ok) return ok.error();
  kept_.used(found.sequence);
  return tokens;
}

Status Scheduler::add_prefix(const std::function<Status(Sequence&)>& fill) {
  auto made = model_->new_sequence();
  while (!made && made.error().code == Code::OutOfMemory && kept_.drop(nullptr))
    made = model_->new_sequence();
  if (!made) return made.error();
  Status filled = fill(**made);
  while (!filled && filled.error().code == Code::OutOfMemory && kept_.shrink()) filled = fill(**made);
  if (filled) kept_.keep(std::move(*made));
  return filled;
}

int Scheduler::drop_prefix(const InputView& text) {
  const PrefixCache::Found found = kept_.find(text);
  if (found.tokens > 0) kept_.take(found.sequence);
  return found.tokens;
}

}  // namespace gimbal
