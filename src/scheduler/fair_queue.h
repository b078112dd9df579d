// The queues of waiting requests, and the choice of the next one. Clients get equal shares of places and
// computed rows. The next request is of the client with the fewest running requests; among equals, of the
// client with the fewest served rows (counters as in Y. Sheng et al., "Fairness in serving large language
// models", 2024). Within a client, the oldest request is first.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/scheduled_request.h"

namespace gimbal {

struct Client {
  std::string name;
  uint64_t served = 0;  // rows computed for it; a new client starts with the lowest count of all clients
  int running = 0;
  std::deque<std::unique_ptr<ScheduledRequest>> waiting;
};

// For one thread.
class FairQueue {
 public:
  void add(std::unique_ptr<ScheduledRequest>);  // to the end of its client's queue
  // For a running request that gives up its place: puts it at the front of its client's queue.
  void put_back(std::unique_ptr<ScheduledRequest>);
  // The next request for which `may` is true; nullptr: none.
  template <class May>
  ScheduledRequest* next(May may) const {
    ScheduledRequest* best = nullptr;
    for (const auto& c : all_) {
      if (c->waiting.empty()) continue;
      ScheduledRequest& g = *c->waiting.front();
      const auto turn = [](const ScheduledRequest& x) {
        return std::tuple(x.client->running, x.client->served, x.id);
      };
      if ((!best || turn(g) < turn(*best)) && may(g)) best = &g;
    }
    return best;
  }
  std::unique_ptr<ScheduledRequest> take(ScheduledRequest&);  // the result of next(), which runs now
  std::unique_ptr<ScheduledRequest> remove(uint64_t id);      // a waiting one; nullptr: it does not wait
  std::unique_ptr<ScheduledRequest> remove_any();             // likewise
  void ended(Client&);                                        // one of its running requests ended
  int waiting() const { return waiting_; }
  int clients() const { return int(all_.size()); }  // with requests
  const Client* most_running() const;               // nullptr: no client

 private:
  Client& of(const std::string& name);
  std::unique_ptr<ScheduledRequest> take(Client&, size_t index);
  void forget(Client&);  // if it has no requests left

  std::vector<std::unique_ptr<Client>> all_;
  int waiting_ = 0;
};

}  // namespace gimbal
