// gimbal bench MODEL: the speed of prompts and generation, also relative to the device's limits.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/options/options.h"
#include "apps/reports/limits.h"
#include "base/result.h"

namespace gimbal {

struct ModelBenchOptions {
  std::string model;
  int prompt = 512, generate = 128;  // tokens; 0: skip the test
  int repetitions = 5;
  bool measure_again = false;
  std::optional<int> limit_megabytes;  // as in EngineOptions
  std::optional<std::string> draft;    // see apps/bench_drafts.h
};

// Errors: those of loading the model; Usage if there is nothing to measure or the context is too small.
Result<int> bench_model(const CommonOptions&, const ModelBenchOptions&, bool json, bool quiet);

// The work of a prompt of `tokens`: the `operations` of all matrices and of attention, and the share of
// matrices that multiply bytes. `fast`: includes fast kernels, whose instructions have other limits, which
// are not measured.
struct PromptWork {
  double operations = 0, int8_share = 0;
  bool fast = false;
};
PromptWork prompt_work(const ModelPlan&, int tokens);

// gimbal bench MODEL --sequences 1,2,4 --depth 0,4096: the speed of several sequences generated together,
// by number and length.
struct SequenceBenchOptions {
  std::vector<int> sequences, depths;  // neither is empty; measures every number at every depth
  bool shared = false;                 // the sequences share their first `depth` tokens
};

// Generates `options.generate` tokens per sequence. Errors: those of loading the model; Usage if the
// context is too small.
Result<int> bench_sequences(const CommonOptions&, const ModelBenchOptions& options,
                            const SequenceBenchOptions&, bool json, bool quiet);

}  // namespace gimbal
