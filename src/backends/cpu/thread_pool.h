// The worker threads, and the peak speeds that they reach on this machine.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "backends/cpu/event.h"
#include "device/abi.h"

namespace gimbal::cpu {

class ThreadPool {
 public:
  // `spins`: threads spin before they sleep. Only useful with a core per thread: with fewer cores, a spinning
  // thread would delay the thread that it waits for.
  ThreadPool(int threads, bool spins);
  explicit ThreadPool(int threads)
      : ThreadPool(threads, unsigned(threads) <= std::thread::hardware_concurrency()) {}
  ~ThreadPool();
  int size() const { return threads_; }
  bool spins() const { return spins_; }

  // Runs job(worker) on every worker, 0..size()-1; worker 0 is the calling thread. Returns after all have
  // finished, with their writes visible. One call at a time. The first call starts the threads.
  void run(const std::function<void(int)>& job);

 private:
  void worker(int index);
  void wait(Event&, uint32_t old) const;

  const int threads_;
  const bool spins_;
  std::vector<std::thread> workers_;
  const std::function<void(int)>* job_ = nullptr;  // null: the workers must exit. Published by start_
  Event start_, done_;
  alignas(64) std::atomic<int> finished_{0};
};

// The roofline of a thread pool on this machine: peak memory bandwidth and arithmetic throughput.

// Uses the best instruction set within `features`. Throws std::bad_alloc.
void measure_limits(uint32_t features, ThreadPool& pool, uint64_t bytes, gimbal_limits& out);

}  // namespace gimbal::cpu
