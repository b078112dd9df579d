#include "backends/cpu/thread_pool.h"

namespace gimbal::cpu {

ThreadPool::ThreadPool(int threads, bool spins) : threads_(threads), spins_(spins) {}

ThreadPool::~ThreadPool() {
  job_ = nullptr;
  start_.set(start_.value() + 1);
  for (std::thread& w : workers_) w.join();
}

void ThreadPool::worker(int index) {
  for (uint32_t jobs = 0;; jobs++) {
    wait(start_, jobs);
    if (!job_) return;
    (*job_)(index);
    // Each increment acquires those before it, so that the last worker hands all of their work to done_.
    if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) done_.set(done_.value() + 1);
  }
}

void ThreadPool::run(const std::function<void(int)>& job) {
  for (int i = int(workers_.size()) + 1; i < threads_; i++)
    workers_.emplace_back(&ThreadPool::worker, this, i);
  if (threads_ == 1) return job(0);
  job_ = &job;
  finished_.store(0, std::memory_order_relaxed);  // start_ publishes it; all workers wait for start_
  const uint32_t before = done_.value();
  start_.set(start_.value() + 1);
  job(0);
  if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) done_.set(before + 1);
  else wait(done_, before);
}

void ThreadPool::wait(Event& event, uint32_t old) const {
  if (!spins_ || !event.spin_while(old)) event.sleep_while(old);
}

}  // namespace gimbal::cpu
