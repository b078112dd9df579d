// One thread with one model serves the requests of many threads: scheduler/scheduler.h with a queue in front
// of it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "scheduler/grammars.h"
#include "scheduler/scheduler.h"

namespace gimbal {

// Thread-safe.
class SchedulerThread final : public GenerationService {
 public:
  // `tokenizer`: the model's. The scheduler's thread calls `on_device_lost`; no other thread may use its
  // objects meanwhile. Errors: Unsupported for a model without logits; Failed when the system has no thread.
  static Result<std::unique_ptr<SchedulerThread>> create(ModelPtr, std::unique_ptr<Tokenizer> tokenizer,
                                                         OnDeviceLost, const SchedulerOptions& options = {});
  // Ends running and waiting requests with Finish::Cancelled.
  ~SchedulerThread() override;

  // Errors: those of the interface; the error that ended the engine for good. The sink may be called before
  // this returns, and, with a grammar, from another thread than the engine's.
  Status submit(uint64_t id, GenerationRequest, GenerationSink) override;
  void cancel(uint64_t id) override;

  // Calls `work` on the engine's thread between two steps, and waits for it. nullptr: the engine ends.
  void between_steps(const std::function<void(Scheduler*)>& work);

  SchedulerNumbers numbers() const;
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  int capacity() const { return capacity_; }  // positions that one text can have

 private:
  SchedulerThread(ModelPtr, std::unique_ptr<Tokenizer>, OnDeviceLost, const SchedulerOptions&);
  void run();
  void arrive(uint64_t id, double at, GenerationRequest, GenerationSink, std::optional<Constraint>,
              bool cancelled);
  void compiled(uint64_t id, double at, GenerationRequest, GenerationSink, std::optional<Result<Constraint>>);
  void forget(uint64_t id);

  const std::unique_ptr<Tokenizer> tokenizer_;
  const int vocabulary_, width_, capacity_;
  const std::vector<float> adapters_;  // the scales that the model was loaded with
  const uint64_t most_;                // requests at once, including waiting ones
  mutable std::mutex mutex_;           // guards the members below, but for the engine's and grammars' own
  std::condition_variable wake_;
  bool mask_found_ = false;

  Scheduler serving_;  // used by the thread only

  Grammars grammars_;

  std::vector<std::unique_ptr<ScheduledRequest>> arrived_;
  std::vector<uint64_t> cancelled_;
  struct Call {
    const std::function<void(Scheduler*)>* work;
    bool done = false;
  };
  std::vector<Call*> calls_;
  std::condition_variable called_;
  std::vector<uint64_t> compiling_;  // not cancelled, with grammars that are not ready
  uint64_t submitted_ = 0;
  bool stopping_ = false;
  std::optional<Error> broken_;
  SchedulerNumbers numbers_;
  std::thread thread_;
};

}  // namespace gimbal
