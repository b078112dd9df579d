// A thread for work that takes longer than a loop may wait: its errands are done one after the other.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace gimbal {

class Errands {
 public:
  Errands() = default;
  Errands(const Errands&) = delete;
  // Waits for the errand in progress; the others are dropped.
  ~Errands() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  void add(std::function<void()> errand) {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(errand));
    }
    wake_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      const std::function<void()> errand = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      errand();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gimbal
