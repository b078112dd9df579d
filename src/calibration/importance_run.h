// Computes importance matrices: runs a model over a text, and adds the squares of all inputs of its matrix
// products. The same bits with any number of threads and any batch.
#pragma once
#include <functional>

#include "quantize/importance_sums.h"
#include "runtime/likelihood.h"
#include "runtime/scored_windows.h"

namespace gimbal {

// The options that the model must be loaded with, made of the user's.
RunOptions importance_options(RunOptions, int window);

struct ImportanceRun {
  Mean loss;        // nats of a scored token
  int windows = 0;  // that were computed
};

// Adds all windows of a text to `to`, whole ones only. `progress`: before each window, and after the last
// one; false ends the run. Errors: Usage if the model was not loaded with importance_options(), or `to` is of
// another model; those of Session::advance.
Result<ImportanceRun> add_importance(Model&, const ModelSource& file, const ScoredWindows&,
                                     ImportanceSums& to, const std::function<bool(int windows)>& progress);

}  // namespace gimbal
