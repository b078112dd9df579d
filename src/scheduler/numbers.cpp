#include "scheduler/numbers.h"

#include "base/saturating.h"

namespace gimbal {

Durations& Durations::operator+=(const Durations& d) {
  for (size_t i = 0; i < counts.size(); i++) counts[i] += d.counts[i];
  sum += d.sum;
  return *this;
}

SchedulerNumbers& SchedulerNumbers::operator+=(const SchedulerNumbers& n) {
  // Numbers from workers are not trusted: an int never overflows.
  for (auto count :
       {&SchedulerNumbers::running, &SchedulerNumbers::waiting, &SchedulerNumbers::pages,
        &SchedulerNumbers::pages_running, &SchedulerNumbers::pages_kept, &SchedulerNumbers::pages_shared})
    this->*count = saturating_sum(this->*count, n.*count);
  requests += n.requests;
  tokens_generated += n.tokens_generated, prompt_tokens += n.prompt_tokens, shared_tokens += n.shared_tokens;
  steps += n.steps, rows += n.rows;
  preemptions += n.preemptions, devices_lost += n.devices_lost;
  first_token += n.first_token, between_tokens += n.between_tokens;
  return *this;
}

SchedulerNumbers SchedulerNumbers::past() const {
  SchedulerNumbers n = *this;
  n.running = n.waiting = 0;
  n.pages = n.pages_running = n.pages_kept = n.pages_shared = 0;
  return n;
}

}  // namespace gimbal
