// The threads that compute together. They wait by spinning for a while, because what they wait for comes soon
// while tokens are computed, and then sleep, because an idle program must not burn a core.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace gimbal::cpu {

class Team {
 public:
  explicit Team(int threads);
  ~Team();
  int size() const { return threads_; }

  // Runs job(member) on every member, 0..size()-1; member 0 is the calling thread. Returns when all are done.
  // One call at a time. Threads are started by the first call.
  void run(const std::function<void(int)>& job);

  // To be called by every member inside a job, equally often: nobody goes on before all are here.
  void barrier() {
    if (last_to_arrive()) release();
  }
  // The same in two halves, with something between that one thread does: the last member to arrive is told so
  // at once, and the others wait here until it calls release().
  bool last_to_arrive();
  void release() { meet_.raise(); }

 private:
  // A number that goes up, waited for with a spin before a sleep. On a cache line of its own: who spins on it
  // must not be disturbed by writes to something else.
  struct alignas(64) Signal {
    std::atomic<uint32_t> value{0};
    std::atomic<int> sleepers{0};
    void raise();
    void await_change(uint32_t from, bool spin);
  };
  void member(int index);

  const int threads_;
  const bool spin_;  // every member has a core
  std::vector<std::thread> workers_;
  const std::function<void(int)>* job_ = nullptr;
  std::atomic<bool> quit_{false};
  Signal start_, meet_;
  alignas(64) std::atomic<int> arrived_{0};
};

}  // namespace gimbal::cpu
