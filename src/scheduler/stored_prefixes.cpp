// The scheduler and the prefix store: beginnings of texts that are read from disk, and pages for it.
#include "scheduler/scheduler.h"

namespace gimbal {

// A sequence with a stored prefix of the text, at least a page longer than `b`; nullptr: there is none, or no
// memory for it.
std::unique_ptr<Sequence> Scheduler::take_stored(ScheduledRequest& g, const Beginning& b) {
  if (!prefixes_) return nullptr;
  const auto& scales = g.text.inputs().adapters();
  g.stored = prefixes_->text(scales, g.owner);
  const InputView text = InputView(g.text.inputs()).first(g.text.reusable());
  if (int(text.size()) < b.tokens + kPagePositions) return nullptr;
  if (b.tokens > 0 && prefixes_->find(*g.stored, text) < b.tokens + kPagePositions) return nullptr;
  // A place of its own: a kept prefix leaves for it, but not the one that is used otherwise.
  auto made = model_->new_sequence();
  while (!made && kept_.drop(b.runs ? nullptr : b.of)) made = model_->new_sequence();
  if (!made || !(*made)->adapt(scales)) return nullptr;
  auto taken = prefixes_->restore(*model_, **made, text, *g.stored);
  while (!taken && taken.error().code == Code::OutOfMemory && kept_.shrink(b.runs ? nullptr : b.of))
    taken = prefixes_->restore(*model_, **made, text, *g.stored);
  // The next step meets the same failure of a device, and reports it.
  if (!taken || *taken <= b.tokens) return nullptr;
  if (g.admitted == 0) g.stored_tokens = *taken, g.stored_page = g.stored->last_page();
  return std::move(*made);
}

// Before a step: later ones may drop pages that have left a window.
void Scheduler::offer_stored() {
  if (!prefixes_) return;
  for (const Part& part : parts_)
    if (ScheduledRequest& g = *part.generation; g.stored) prefixes_->offer(*model_, *g.sequence, *g.stored);
}

}  // namespace gimbal
