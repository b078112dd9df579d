// Computes slow grammar masks in a thread of its own. The engine's steps leave out requests that wait for a
// mask; the others continue.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "grammar/constraint.h"

namespace gimbal {

// A text that a grammar constrains. While `known` is false, only the thread may use it.
struct MaskedText {
  explicit MaskedText(Constraint c) : constraint(std::move(c)) {}
  Constraint constraint;
  int left = 0;  // Constraint::allowed()
  std::atomic<bool> known = true;
};

class MaskWorker {
 public:
  // `found`: called from the thread, once for each; must not wait.
  explicit MaskWorker(std::function<void()> found = {}) : found_(std::move(found)) {}
  ~MaskWorker();

  // Resets the budget of grammar steps for masks in an engine step, over all texts: 1 to 2 ms mostly.
  void begin_step() { left_of_step_ = kStepsOfStep; }
  // True: allowed() answers at once. False: the thread computes the mask; call again later.
  bool find(const std::shared_ptr<MaskedText>&, int left);

 private:
  static constexpr size_t kStepsOfStep = 80'000, kStepsOfText = 40'000;
  struct Job {
    std::shared_ptr<MaskedText> text;
    size_t steps;
  };
  void run();

  const std::function<void()> found_;
  size_t left_of_step_ = kStepsOfStep;
  std::mutex mutex_;  // guards the members below
  std::condition_variable wake_;
  std::deque<Job> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gimbal
