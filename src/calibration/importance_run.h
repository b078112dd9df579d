// Computes importance matrices: runs a model over a text, and adds the squares of all inputs of its matrix
// products. The same bits with any number of threads and any batch.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "program/program.h"
#include "quantize/importance_sums.h"
#include "runtime/likelihood.h"
#include "runtime/scored_windows.h"

namespace gimbal {

// The options that the model must be loaded with, made of the user's.
RunOptions importance_options(RunOptions, int window);

struct ImportanceRun {
  Mean loss;        // nats of a scored token
  int windows = 0;  // that were computed
  int next = 0;     // the number, in the whole text, of the window to continue with
};

// Adds all windows of a text to `to`, whole ones only. `progress`: before each window, and after the last
// one; false ends the run. Errors: Usage if the model was not loaded with importance_options(), or `to` is of
// another model; those of Session::advance.
Result<ImportanceRun> add_importance(Model&, const ModelSource& file, const ScoredWindows&,
                                     ImportanceSums& to, const std::function<bool(int windows)>& progress);

// Which values of a program enter its matrix products, before they are quantized.
struct ProductInput {
  uint32_t tensor;                 // of the weight, as WeightSource::tensor
  int64_t matrix;                  // in the tensor; the first one of a product of several
  uint16_t values;                 // f32[columns, slots, rows], index into Program::values
  int64_t columns, slots;          // `slots`: vectors in a row of the value
  int64_t matrices = 1;            // that the product takes together: experts, heads
  std::optional<uint16_t> routes;  // f32[2 slots, rows]: the matrix of each slot is in the second half
};

// One for each product with a weight of the model's file. Parts of a matrix have one input, so only the part
// with its first row counts.
std::vector<ProductInput> product_inputs(const Program&);

}  // namespace gimbal
