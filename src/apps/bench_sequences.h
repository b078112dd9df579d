// gimbal bench MODEL --sequences 1,2,4 --depth 0,4096: how fast several sequences are generated together, and
// how that depends on how long they are.
#pragma once
#include "apps/bench_model.h"

namespace gimbal {

struct SequenceBenchOptions {
  std::vector<int> sequences, depths;  // both not empty; of every depth, every number of sequences
  bool shared = false;                 // the sequences have their first `depth` tokens in common
};

// Generates `options.generate` tokens of each sequence. Errors: those of loading the model; Usage when the
// context is too small.
Result<int> bench_sequences(const CommonOptions&, const ModelBenchOptions& options,
                            const SequenceBenchOptions&, bool json, bool quiet);

}  // namespace gimbal
