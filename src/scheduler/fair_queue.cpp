#include "scheduler/fair_queue.h"

#include <algorithm>

namespace gimbal {

// A returning client gets no credit for the service of others in its absence.
Client& FairQueue::of(const std::string& name) {
  uint64_t least = UINT64_MAX;
  for (const auto& c : all_) {
    if (c->name == name) return *c;
    least = std::min(least, c->served);
  }
  all_.push_back(std::make_unique<Client>());
  all_.back()->name = name, all_.back()->served = all_.size() == 1 ? 0 : least;
  return *all_.back();
}

void FairQueue::add(std::unique_ptr<ScheduledRequest> g) {
  g->client = &of(g->client_name);
  g->client->waiting.push_back(std::move(g));
  waiting_++;
}

void FairQueue::put_back(std::unique_ptr<ScheduledRequest> g) {
  Client& c = *g->client;
  c.running--, waiting_++;
  c.waiting.push_front(std::move(g));
}

std::unique_ptr<ScheduledRequest> FairQueue::take(Client& c, size_t index) {
  auto g = std::move(c.waiting[index]);
  c.waiting.erase(c.waiting.begin() + ptrdiff_t(index));
  waiting_--;
  return g;
}

std::unique_ptr<ScheduledRequest> FairQueue::take(ScheduledRequest& next) {
  next.client->running++;
  return take(*next.client, 0);
}

std::unique_ptr<ScheduledRequest> FairQueue::remove(uint64_t id) {
  for (const auto& c : all_)
    for (size_t i = 0; i < c->waiting.size(); i++) {
      if (c->waiting[i]->id != id) continue;
      auto g = take(*c, i);
      forget(*c);
      return g;
    }
  return nullptr;
}

std::unique_ptr<ScheduledRequest> FairQueue::remove_any() {
  for (const auto& c : all_)
    if (!c->waiting.empty()) return remove(c->waiting.front()->id);
  return nullptr;
}

void FairQueue::ended(Client& c) {
  c.running--;
  forget(c);
}

void FairQueue::forget(Client& c) {
  if (c.running == 0 && c.waiting.empty())
    std::erase_if(all_, [&](const auto& one) { return one.get() == &c; });
}

const Client* FairQueue::most_running() const {
  const Client* most = nullptr;
  for (const auto& c : all_)
    if (!most || c->running > most->running) most = c.get();
  return most;
}

}  // namespace gimbal
