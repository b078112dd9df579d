// gimbal bench MODEL: how fast prompts and generation are, and how near to what the device gives at best.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/limits.h"
#include "apps/options.h"
#include "base/result.h"

namespace gimbal {

struct ModelBenchOptions {
  std::string model;
  int prompt = 512, generate = 128;  // tokens; 0: skip it
  int repetitions = 5;
  bool measure_again = false;
  std::optional<int> limit_megabytes;  // as in EngineOptions
  std::optional<std::string> draft;    // see apps/bench_drafts.h
};

// Errors: those of loading the model; Usage when there is nothing to measure or the context is too small.
Result<int> bench_model(const CommonOptions&, const ModelBenchOptions&, bool json, bool quiet);

// What computing a prompt of `tokens` takes: `operations` of all matrices and of attention, and the share of
// those of matrices that multiply bytes. `fast`: some are computed by fast rows, whose instructions have
// limits of their own, which are not measured.
struct PromptWork {
  double operations = 0, int8_share = 0;
  bool fast = false;
};
PromptWork prompt_work(const ModelPlan&, int tokens);

}  // namespace gimbal
