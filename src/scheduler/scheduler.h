// Serves many requests with one model, step by step: running requests get their next tokens together, and
// prompts are computed in pieces beside them. Each request gets the same result as alone, because a row's
// bits depend only on its sequence (runtime/batch.h). So admission, sharing and preemption affect time and
// memory, never results.
#pragma once
#include <functional>

#include "runtime/device_lost.h"
#include "runtime/model.h"
#include "scheduler/fair_queue.h"
#include "scheduler/numbers.h"
#include "scheduler/prefix_cache.h"
#include "scheduler/speculative_decoding.h"

namespace gimbal {

inline constexpr double kMixedStep = 0.05;  // seconds
// The least rows of such a step, and of prompts in it: kernels for few rows take up to 32, and with
// slightly more rows a CPU computes fewer per second.
inline constexpr int kMixedRows = 32, kMixedPromptRows = 16;

struct SchedulerOptions {
  // Rows of prompts in a mixed step, which also computes next tokens. More rows compute prompts faster;
  // fewer keep streams even. 0: chosen to keep such a step near kMixedStep.
  int prompt_rows = 0;
  int queue = 256;  // most waiting requests, beyond those that the model can run
  // Needs a model with RunOptions::drafts, and with states if the drafters read them.
  DraftOptions drafts = {};
  // Reads and stores the beginnings of texts; outlives the scheduler. nullptr: none.
  PrefixStore* prefixes = nullptr;
};

// For one thread.
class Scheduler {
 public:
  // `mask_found`: called from another thread when stalled() may have ended.
  Scheduler(ModelPtr model, OnDeviceLost, const SchedulerOptions& options,
            std::function<void()> mask_found = {});

  // The number of requests that can run at once: limited by sequences and result rows of RunOptions.
  static int places(const ModelPlan&);
  // Positions that one text can have: the context, or the KV cache if that is smaller.
  static int capacity(const ModelPlan&);

  void add(std::unique_ptr<ScheduledRequest>);  // puts it into the queue
  void cancel(uint64_t id);                     // ends it; ignores unknown ids
  void end_all(const Error* why);               // as failed; nullptr: as cancelled
  bool idle() const { return running_.empty() && waiting_.waiting() == 0; }
  // All running requests wait for masks; until one is ready, a step does nothing.
  bool stalled() const { return stalled_; }
  // One step of the model for all. Not when idle. Errors: those that end the engine for good; then all
  // requests have failed, and all later ones would fail.
  Status step();

  // ---- prefixes of earlier requests, between two steps: prefixes.cpp
  // Calls `use` with the longest kept beginning of the text, and nothing behind it. Returns its tokens; 0:
  // none is kept, and there was no call. Errors: OutOfMemory if all sequences are taken; those of `use`.
  Result<int> use_prefix(const InputView& text, const std::function<Status(const Sequence&)>& use);
  // Keeps what `fill` puts into an empty sequence. Where sequences or pages are missing, the least recently
  // used prefixes go. Errors: OutOfMemory; those of `fill`.
  Status add_prefix(const std::function<Status(Sequence&)>& fill);
  // Drops the longest kept beginning of the text, with all behind it. Returns its tokens.
  int drop_prefix(const InputView& text);
  Model& own_model() { return *model_; }

  const SchedulerNumbers& numbers() const { return numbers_; }
  const Model& model() const { return *model_; }

 private:
  using Running = std::vector<std::unique_ptr<ScheduledRequest>>;
  const ModelPlan& plan() const { return model_->plan(); }

  // ---- admission: admission.cpp
  struct Beginning {
    Sequence* of = nullptr;
    int tokens = 0;
    bool runs = false;  // `of` belongs to a running request
  };
  void admit();
  bool waits_for_another(ScheduledRequest&);
  Beginning beginning_of(const ScheduledRequest&) const;
  bool has_memory(const ScheduledRequest&, const Beginning&);
  void start(std::unique_ptr<ScheduledRequest>, const Beginning&);
  bool make_place_for(const Client&);
  void preempt(const Client&);
  void put_back(size_t running);
  std::unique_ptr<Sequence> take_stored(ScheduledRequest&, const Beginning&);  // stored_prefixes.cpp
  void offer_stored();
  int pages_running(size_t pool);
  void count();

  // ---- a step: scheduler.cpp
  void assemble(bool drafts);
  void add_rows(ScheduledRequest&, int rows, std::span<const Token> drafts);
  bool add_drafted(ScheduledRequest&, int most);
  int pages_missing() const;
  void make_room();
  void adapt(double seconds);
  Status deliver(const StepOutput&, double seconds);
  struct Part;
  Result<int> emit(const Part&, const StepOutput&, size_t k, double at);
  int rows_of_prompt(const ScheduledRequest&, int most, int& spare_logits);
  void leave_who_is_over();
  Status fail_step(const Error& why);
  Status go_on_elsewhere(const Error& lost);
  void leave(size_t running);

  ModelPtr model_;
  const OnDeviceLost on_device_lost_;
  const SchedulerOptions options_;
  PrefixCache kept_;
  FairQueue waiting_;
  SpeculativeDecoding speculation_;
  MaskWorker masks_;
  PrefixStore* prefixes_;  // nullptr: none, or the model's new device cannot use it
  bool stalled_ = false;
  int mixed_rows_ = 64;  // of mixed steps, if the options leave it open
  Running running_;      // by rising admission
  uint64_t admissions_ = 0;
  SchedulerNumbers numbers_;

  // Of the step; their memory is reused.
  struct Part {
    ScheduledRequest* generation;
    TextRows rows;
  };
  Batch batch_;
  bool mixed_ = false;  // it has next tokens and the most rows of prompts
  std::vector<Part> parts_;
  std::vector<ScheduledRequest*> next_;     // need only a few rows for their next tokens
  std::vector<ScheduledRequest*> prompts_;  // in the order of their turns
  std::vector<uint8_t> seen_;               // by page: 0, 1, or 2 for several holders
};

}  // namespace gimbal
