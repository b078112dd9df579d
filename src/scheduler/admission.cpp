// Admission: when a request gets a place and pages, which pages it shares, and which request gives up its
// place.
#include <algorithm>

#include "scheduler/scheduler.h"

namespace gimbal {
namespace {

// Computing fewer tokens than this is faster than copying their page.
constexpr int kLeastShared = 16;

// Tokens whose logits are needed must be computed: the last one, and those that score the prompt.
InputView shareable(const ScheduledRequest& g) { return InputView(g.text.inputs()).first(g.text.reusable()); }

}  // namespace

void Scheduler::admit() {
  while (waiting_.waiting() > 0) {
    ScheduledRequest* g = waiting_.next([this](ScheduledRequest& one) { return !waits_for_another(one); });
    if (!g) return;
    const auto places = size_t(Scheduler::places(plan()));
    for (;;) {
      if (running_.size() < places) {
        const Beginning b = beginning_of(*g);
        if (has_memory(*g, b)) {
          start(waiting_.take(*g), b);
          break;
        }
      }
      if (!make_place_for(*g->client)) return;
    }
  }
}

// If many requests have the same beginning, the first of them computes it for all.
bool Scheduler::waits_for_another(ScheduledRequest& g) {
  if (g.follows) {
    for (const auto& r : running_)
      if (r->id == g.follows && r->sequence->computed() < g.follow_until) return true;
    g.follows = 0;
  }
  if (g.looked_around == admissions_) return false;
  g.looked_around = admissions_;
  const auto text = shareable(g);
  int most = kept_.find(text).tokens + kPagePositions;  // one more page is worth a wait
  for (const auto& r : running_) {
    if (r->missing() <= 1) continue;
    const auto common = int(common_prefix(r->text.inputs(), text));
    if (common < most || common < r->sequence->computed() + kPagePositions) continue;
    most = common, g.follows = r->id, g.follow_until = common;
  }
  return g.follows != 0;
}

Scheduler::Beginning Scheduler::beginning_of(const ScheduledRequest& g) const {
  const auto text = shareable(g);
  const PrefixCache::Found kept = kept_.find(text);
  Beginning best{kept.sequence, kept.tokens, false};
  for (const auto& r : running_) {
    const Sequence& s = *r->sequence;
    const int tokens = s.keeps(int(common_prefix(s.inputs(), text)));
    if (tokens > best.tokens) best = {r->sequence.get(), tokens, true};
  }
  return best.tokens < kLeastShared ? Beginning{} : best;
}

// Pages for its text and the next token, and one per running request, so that none must leave at once.
bool Scheduler::has_memory(const ScheduledRequest& g, const Beginning& b) {
  if (running_.empty()) return true;
  const auto& pools = model_->sequences().pools();
  const int shared = b.runs ? b.tokens / kPagePositions : 0;
  for (size_t p = 0; p < pools.size(); p++) {
    if (pools[p].kind != StateKind::Paged || pools[p].window) continue;
    const int wanted = int(g.text.tokens().size()) / kPagePositions + 1 - shared + int(running_.size());
    if (wanted > pools[p].pages - pages_running(p)) return false;
  }
  return true;
}

void Scheduler::start(std::unique_ptr<ScheduledRequest> g, const Beginning& b) {
  const Sequence* kept = b.runs ? nullptr : b.of;
  auto full = [&] { return int(running_.size()) + kept_.count() >= plan().options.sequences; };
  while (full() && kept_.drop(kept)) {}
  std::unique_ptr<Sequence> stored = take_stored(*g, b);
  const int shared = stored ? stored->computed() : b.tokens;
  Result<std::unique_ptr<Sequence>> made = stored           ? std::move(stored)
                                           : b.of && full() ? kept_.take(b.of)
                                           : b.of           ? b.of->fork()
                                                            : model_->new_sequence();
  if (made) {
    (*made)->truncate(shared);
    // Texts under other adapters share no prefix, so this cannot fail either.
    if (auto ok = (*made)->adapt(g->text.inputs().adapters()); !ok) made = ok.error();
  }
  if (!made) {  // there is a sequence for each place
    g->emit_failed(made.error());
    waiting_.ended(*g->client);
    numbers_.requests++;
    return;
  }
  kept_.used(kept);
  g->sequence = std::move(*made);
  if (g->admitted == 0) {
    g->shared_tokens = std::min(shared, g->text.prompt_tokens());
    numbers_.prompt_tokens += uint64_t(g->text.prompt_tokens());
    numbers_.shared_tokens += uint64_t(g->shared_tokens);
  }
  speculation_.join(*g);
  g->admitted = ++admissions_;
  g->checkpoint_at = 0, g->again = 0;
  for (const StatePool& pool : plan().pools)
    if (pool.kind == StateKind::Recurrent)
      g->checkpoint_at = int(g->text.inputs().size() - 1) / kPagePositions * kPagePositions;
  if (g->stored) g->stored->keep_state_at(g->checkpoint_at);
  running_.push_back(std::move(g));
}

// If another client has more than an equal share of the places, and this client less.
bool Scheduler::make_place_for(const Client& c) {
  const int share = std::max(1, int(running_.size()) / waiting_.clients());
  const Client& most = *waiting_.most_running();
  if (c.running >= share || most.running <= share) return false;
  preempt(most);
  return true;
}

// The youngest of a client's requests. Keeps its computed state until the memory is needed.
void Scheduler::preempt(const Client& c) {
  size_t i = running_.size() - 1;
  while (running_[i]->client != &c) i--;
  numbers_.preemptions++;
  kept_.keep(std::move(running_[i]->sequence));
  put_back(i);
}

void Scheduler::put_back(size_t i) {
  auto g = std::move(running_[i]);
  running_.erase(running_.begin() + ptrdiff_t(i));
  g->sequence = nullptr, g->drafting = nullptr, g->stored = std::nullopt;
  waiting_.put_back(std::move(g));
}

int Scheduler::pages_running(size_t pool) {
  seen_.assign(size_t(plan().pools[pool].pages), 0);
  int n = 0;
  for (const auto& g : running_)
    for (int32_t page : g->sequence->pages(pool)) {
      uint8_t& holders = seen_[size_t(page)];
      n += holders == 0;
      holders = uint8_t(holders ? 2 : 1);
    }
  return n;
}

void Scheduler::count() {
  numbers_.running = int(running_.size()), numbers_.waiting = waiting_.waiting();
  numbers_.pages = numbers_.pages_running = numbers_.pages_kept = numbers_.pages_shared = 0;
  const SequencePool& all = model_->sequences();
  for (size_t p = 0; p < all.pools().size(); p++) {
    const int pages = all.pools()[p].pages, running = pages_running(p);
    numbers_.pages += pages, numbers_.pages_running += running;
    for (const auto holders : seen_) numbers_.pages_shared += holders > 1;
    numbers_.pages_kept += pages - all.free_pages(p) - running;
  }
}

}  // namespace gimbal
