// Who waits, and whose turn it is. Clients get equal shares of the places and of what is computed, whatever
// they ask for: the turn is that of the client with the fewest running requests, of several the one that was
// served least (counters as in Y. Sheng et al., "Fairness in serving large language models", 2024). Within a
// client, who came first.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/generation.h"

namespace gimbal {

struct Client {
  std::string name;
  uint64_t served = 0;  // rows that were computed for it; beginning with the least of those who are there
  int running = 0;
  std::deque<std::unique_ptr<Generation>> waiting;
};

// Of one thread.
class Clients {
 public:
  void add(std::unique_ptr<Generation>);  // to the end of its client's queue
  // A running request gives up its place: it is the first of its client's queue.
  void put_back(std::unique_ptr<Generation>);
  // The request whose turn it is, of those for which `may` is true; nullptr: none.
  template <class May>
  Generation* next(May may) const {
    Generation* best = nullptr;
    for (const auto& c : all_) {
      if (c->waiting.empty()) continue;
      Generation& g = *c->waiting.front();
      const auto turn = [](const Generation& x) {
        return std::tuple(x.client->running, x.client->served, x.id);
      };
      if ((!best || turn(g) < turn(*best)) && may(g)) best = &g;
    }
    return best;
  }
  std::unique_ptr<Generation> take(Generation&);    // next()'s: it runs now
  std::unique_ptr<Generation> remove(uint64_t id);  // waiting; nullptr: it is not
  std::unique_ptr<Generation> remove_any();         // likewise
  void ended(Client&);                              // one of its running requests did
  int waiting() const { return waiting_; }
  int clients() const { return int(all_.size()); }  // with requests
  const Client* most_running() const;               // nullptr: nobody is there

 private:
  Client& of(const std::string& name);
  std::unique_ptr<Generation> take(Client&, size_t index);
  void forget(Client&);  // where nothing of it is left

  std::vector<std::unique_ptr<Client>> all_;
  int waiting_ = 0;
};

}  // namespace gimbal
