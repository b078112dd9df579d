#include "scheduler/mask_worker.h"

#include <algorithm>
#include <system_error>

namespace gimbal {

MaskWorker::~MaskWorker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

bool MaskWorker::find(const std::shared_ptr<MaskedText>& text, int left) {
  if (!text->known.load(std::memory_order_acquire)) return false;
  const size_t most = std::min(left_of_step_, kStepsOfText);
  size_t steps = most;
  const bool found = text->constraint.prepare(left, steps);
  left_of_step_ -= most - steps;
  if (found) return true;
  const std::lock_guard lock(mutex_);
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    return text->constraint.prepare(left, steps = SIZE_MAX);  // then the others wait, too
  }
  text->left = left;
  text->known = false;
  waiting_.push_back({text, kStepsOfText});
  wake_.notify_one();
  return false;
}

// In growing turns, so that fast masks do not wait for slow ones.
void MaskWorker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    if (job.text.use_count() == 1) continue;  // no request waits for it any more
    lock.unlock();
    size_t steps = job.steps;
    const bool found = job.text->constraint.prepare(job.text->left, steps);
    if (found) {
      job.text->known.store(true, std::memory_order_release);
      job.text.reset();
      if (found_) found_();
    }
    lock.lock();
    if (!found) waiting_.push_back({std::move(job.text), job.steps * 2});
  }
}

}  // namespace gimbal
