// Serves many requests with one model, step by step: what runs gets its next tokens together, prompts are
// computed in pieces beside them, and everybody gets what it would get alone, because a row's bits depend on
// its sequence only (runtime/batch.h). So who runs, waits, shares or starts anew is a matter of time and
// memory, never of results.
#pragma once
#include <functional>

#include "runtime/device_lost.h"
#include "runtime/model.h"
#include "scheduler/clients.h"
#include "scheduler/numbers.h"
#include "scheduler/prefixes.h"
#include "scheduler/speculation.h"

namespace gimbal {

inline constexpr double kMixedStep = 0.05;  // seconds
// Rows of such a step at least, and of prompts in it: kernels for few rows take 32, and at some more rows a
// CPU computes fewer of them a second.
inline constexpr int kMixedRows = 32, kMixedPromptRows = 16;

struct SchedulerOptions {
  // Rows of prompts in a step that others wait in for their next tokens. More compute prompts faster, fewer
  // let streams flow more evenly. 0: as many as keep such a step near kMixedStep.
  int prompt_rows = 0;
  int queue = 256;  // requests that wait at most, beside those that the model has room for
  // With them the model was loaded with RunOptions::drafts, and with states where the drafters want to know.
  DraftOptions drafts = {};
};

// Of one thread.
class Serving {
 public:
  // `mask_found`: called from another thread when stalled() may have ended.
  Serving(ModelPtr model, OnDeviceLost, const SchedulerOptions& options,
          std::function<void()> mask_found = {});

  // Requests that can run at once: as RunOptions has sequences, and rows with results.
  static int places(const ModelPlan&);
  // Positions that one text can have: the context, or the KV cache where that is smaller.
  static int capacity(const ModelPlan&);

  void add(std::unique_ptr<Generation>);  // it waits
  void cancel(uint64_t id);               // ends it; passed over if it is not there
  void end_all(const Error* why);         // failed; nullptr: cancelled
  bool idle() const { return running_.empty() && waiting_.waiting() == 0; }
  // All that run wait for masks: until one is found, a step does nothing.
  bool stalled() const { return stalled_; }
  // One step of the model for all. Not when idle. Errors: of an engine that cannot go on; then all requests
  // have failed, and all later ones would.
  Status step();

  const SchedulerNumbers& numbers() const { return numbers_; }
  const Model& model() const { return *model_; }

 private:
  using Running = std::vector<std::unique_ptr<Generation>>;
  const ModelPlan& plan() const { return model_->plan(); }

  // ---- who runs: admission.cpp
  struct Beginning {
    Sequence* of = nullptr;
    int tokens = 0;
    bool runs = false;  // `of` is a running request's
  };
  void admit();
  bool waits_for_another(Generation&);
  Beginning beginning_of(const Generation&) const;
  bool has_memory(const Generation&, const Beginning&);
  void start(std::unique_ptr<Generation>, const Beginning&);
  bool make_place_for(const Client&);
  void preempt(const Client&);
  void put_back(size_t running);
  int pages_running(size_t pool);
  void count();

  // ---- a step: serving.cpp
  void assemble(bool drafts);
  void add_rows(Generation&, int rows, std::span<const Token> drafts);
  bool add_drafted(Generation&, int most);
  int pages_missing() const;
  void make_room();
  void adapt(double seconds);
  Status told(const StepOutput&, double seconds);
  struct Part;
  Result<int> tell(const Part&, const StepOutput&, size_t k, double at);
  void leave_who_is_over();
  Status fail_step(const Error& why);
  Status go_on_elsewhere(const Error& lost);
  void leave(size_t running);

  ModelPtr model_;
  const OnDeviceLost on_device_lost_;
  const SchedulerOptions options_;
  Prefixes kept_;
  Clients waiting_;
  Speculation speculation_;
  Masks masks_;
  bool stalled_ = false;
  int mixed_rows_ = 64;  // of steps with next tokens and prompts, where the options do not say
  Running running_;      // by rising admission
  uint64_t admissions_ = 0;
  SchedulerNumbers numbers_;

  // Of the step; their memory is used again.
  struct Part {
    Generation* generation;
    TextRows rows;
  };
  Batch batch_;
  bool mixed_ = false;  // it has next tokens, and as many rows of prompts as it may
  std::vector<Part> parts_;
  std::vector<Generation*> next_;     // get their next tokens with a few rows
  std::vector<Generation*> prompts_;  // in the order of their turns
  std::vector<uint8_t> seen_;         // by page: 0, 1, or 2 for several holders
};

}  // namespace gimbal
