// The threads that compute one op together. They wait by spinning for some microseconds, because the next op
// comes that soon while a token is computed, and then sleep, because an idle program must not burn a core.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace gimbal::cpu {

class Team {
 public:
  explicit Team(int threads) : threads_(threads) {}
  ~Team();
  int size() const { return threads_; }

  // Runs job(member) on every member, 0..size()-1; member 0 is the calling thread. Returns when all are done.
  // One call at a time. Threads are started by the first call.
  void run(const std::function<void(int)>& job);

  // To be called by every member inside a job, equally often: nobody goes on before all are here.
  void barrier();

 private:
  // A number that goes up, waited for with a short spin before a sleep.
  struct Signal {
    std::atomic<uint32_t> value{0};
    std::atomic<int> sleepers{0};
    void raise();
    void await_change(uint32_t from);
  };
  void member(int index);

  const int threads_;
  std::vector<std::thread> workers_;
  const std::function<void(int)>* job_ = nullptr;
  std::atomic<bool> quit_{false};
  Signal start_, meet_;
  std::atomic<int> arrived_{0};
};

}  // namespace gimbal::cpu
