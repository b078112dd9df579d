// What a scheduler counts, for metrics: a plain copy, valid at one moment between two steps.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace gimbal {

// How often something took how long.
struct Durations {
  // Seconds; the last count is of those above all of them.
  static constexpr std::array<double, 15> kBounds = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                                     0.5,   1,     2,     5,    10,   30,   60};
  std::array<uint64_t, kBounds.size() + 1> counts = {};  // of those from the bound before up to this one
  double sum = 0;                                        // seconds

  void add(double seconds) {
    size_t i = 0;
    while (i < kBounds.size() && seconds > kBounds[i]) i++;
    counts[i]++, sum += seconds;
  }
  Durations& operator+=(const Durations&);
};

struct SchedulerNumbers {
  int running = 0, waiting = 0;           // requests now
  uint64_t requests = 0;                  // that ended, in whatever way
  uint64_t tokens_generated = 0;          // that were told
  uint64_t prompt_tokens = 0;             // of the requests whose turn came
  uint64_t shared_tokens = 0;             // of these: computed for an earlier request
  uint64_t steps = 0, rows = 0;           // of the model: rows counts what was computed anew, too
  uint64_t preemptions = 0;               // times a request gave its place up, to go on later
  uint64_t devices_lost = 0;              // times all went on on another device
  int pages = 0;                          // of the KV cache, of all kinds together
  int pages_running = 0, pages_kept = 0;  // held by running requests; only by what was kept of earlier ones
  int pages_shared = 0;                   // of the running ones: held by two requests or more
  Durations first_token;                  // from submit() to a request's first token
  Durations between_tokens;               // of one request

  SchedulerNumbers& operator+=(const SchedulerNumbers&);
  // What stays when the scheduler is gone: nothing runs or waits there, and it has no page. What was counted
  // must not become less.
  SchedulerNumbers past() const;
};

}  // namespace gimbal
