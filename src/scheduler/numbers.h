// The counters of a scheduler, for metrics: a plain copy, valid at one moment between two steps.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace gimbal {

// A histogram of durations.
struct Durations {
  // Seconds; the last count is of durations above the last bound.
  static constexpr std::array<double, 15> kBounds = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                                     0.5,   1,     2,     5,    10,   30,   60};
  std::array<uint64_t, kBounds.size() + 1> counts = {};  // above the bound before, up to this one
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
  uint64_t requests = 0;                  // ended ones, with any result
  uint64_t tokens_generated = 0;          // sent to sinks
  uint64_t prompt_tokens = 0;             // of admitted requests
  uint64_t shared_tokens = 0;             // of these: computed for an earlier request
  uint64_t steps = 0, rows = 0;           // of the model; rows include those computed again
  uint64_t preemptions = 0;               // times a request gave up its place, to continue later
  uint64_t devices_lost = 0;              // times the work moved to another device
  int pages = 0;                          // of the KV cache, of all kinds together
  int pages_running = 0, pages_kept = 0;  // held by running requests; only by kept prefixes
  int pages_shared = 0;                   // of these, held by two or more requests
  Durations first_token;                  // from submit() to a request's first token
  Durations between_tokens;               // of one request

  SchedulerNumbers& operator+=(const SchedulerNumbers&);
  // The totals after the scheduler's end: no requests and no pages. Counters keep their values, because a
  // metric must never fall.
  SchedulerNumbers past() const;
};

}  // namespace gimbal
