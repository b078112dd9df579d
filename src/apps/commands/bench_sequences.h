// gimbal bench MODEL --sequences 1,2,4 --depth 0,4096: the speed of several sequences generated together,
// by number and length.
#pragma once
#include "apps/commands/bench_model.h"

namespace gimbal {

struct SequenceBenchOptions {
  std::vector<int> sequences, depths;  // neither is empty; measures every number at every depth
  bool shared = false;                 // the sequences share their first `depth` tokens
};

// Generates `options.generate` tokens per sequence. Errors: those of loading the model; Usage if the
// context is too small.
Result<int> bench_sequences(const CommonOptions&, const ModelBenchOptions& options,
                            const SequenceBenchOptions&, bool json, bool quiet);

}  // namespace gimbal
