#include "backends/cpu/team.h"

namespace gimbal::cpu {

Team::Team(int threads)
    : threads_(threads), spins_(unsigned(threads) <= std::thread::hardware_concurrency()) {}

Team::~Team() {
  quit_ = true;
  start_.raise();
  for (std::thread& w : workers_) w.join();
}

void Team::member(int index) {
  for (uint32_t seen = 0;;) {
    await(start_, seen);
    seen++;
    if (quit_) return;
    (*job_)(index);
    if (finished_.fetch_add(1) + 1 == threads_) done_.raise();
  }
}

void Team::run(const std::function<void(int)>& job) {
  for (int i = int(workers_.size()) + 1; i < threads_; i++) workers_.emplace_back(&Team::member, this, i);
  if (threads_ == 1) return job(0);
  job_ = &job;
  finished_.store(0, std::memory_order_relaxed);  // all are waiting for start_
  const uint32_t before = done_.value();
  start_.raise();
  job(0);
  if (finished_.fetch_add(1) + 1 != threads_) await(done_, before);
  else done_.raise();
}

}  // namespace gimbal::cpu
