// The threads that compute together.
#pragma once
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "backends/cpu/signal.h"

namespace gimbal::cpu {

class Team {
 public:
  explicit Team(int threads);
  ~Team();
  int size() const { return threads_; }
  // Every member has a core. With fewer cores than members, spinning would keep the others from what is
  // waited for.
  bool spins() const { return spins_; }

  // Runs job(member) on every member, 0..size()-1; member 0 is the calling thread. Returns when all are done.
  // One call at a time. Threads are started by the first call.
  void run(const std::function<void(int)>& job);

  // Returns when the signal is not `from`.
  void await(Signal& signal, uint32_t from) const {
    if (!spins_ || !signal.spin_while(from)) signal.sleep_while(from);
  }

 private:
  void member(int index);

  const int threads_;
  const bool spins_;
  std::vector<std::thread> workers_;
  const std::function<void(int)>* job_ = nullptr;
  std::atomic<bool> quit_{false};
  Signal start_, done_;
  alignas(64) std::atomic<int> finished_{0};
};

}  // namespace gimbal::cpu
