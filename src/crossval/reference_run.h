// A model in double precision, by the definitions of its ops, and how far rounding moves it: the distance
// that a correct implementation in f32 may differ by.
//
// The exact run rounds nothing: weights as the file's format decodes them, activations not quantized. Each
// moved run adds random errors to the result of every op, as large as an implementation may make them:
// - of a float op, sqrt(n) * 2^-24 of the magnitude of its terms, n being the roundings that the op's
// definition allows
//   (the probabilistic bound of Higham and Mary, "A new approach to probabilistic rounding error analysis",
//   2019);
// - of quantized activations, up to half a step of the int8 code;
// - of products with f16 and bf16 weights, a rounding of the activations to that format, as llama.cpp
// computes them;
// - of the cache's values, a rounding to f16 where an old release insists on it;
// - of GELU, roundings of input and output to f16: llama.cpp looks it up in a table.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "device/device.h"
#include "files/model_source.h"
#include "ops/op_def.h"
#include "program/program.h"

namespace gimbal::crossval {

// Rows of numbers: of each token, `width` numbers.
struct Rows {
  int width = 0;
  std::vector<double> values;
  int rows() const { return width ? int(values.size() / size_t(width)) : 0; }
  std::span<const double> row(int i) const {
    return std::span(values).subspan(size_t(i) * size_t(width), size_t(width));
  }
};

struct ModelValues {
  std::vector<int> layers;  // that have a value
  std::vector<Rows> layer;  // of these
  Rows logits;
};

struct ReferenceRun {
  ModelValues exact;
  std::vector<ModelValues> moved;
};

// The multiplications and additions that a run of one token takes, and the largest weight, from the file's
// header.
struct ReferenceCost {
  double operations = 0;     // of one token, of one run
  double largest_bytes = 0;  // of a weight in double precision
};
Result<ReferenceCost> reference_cost(const ModelSource& file, const Device& host);

struct ReferenceSettings {
  int moved = 0;             // the number of moved runs
  int context = 0;           // positions, which some models choose their rotation by; 0: those of the tokens
  bool half_values = false;  // the other implementation keeps the cache's values in f16
  std::function<bool(size_t done, size_t all)> progress = {};  // false cancels
  // Called before each op of the exact run: the program, the op, and its inputs.
  std::function<void(const Program&, const gimbal_op&, std::span<const reference::Tensor* const>)> watch = {};
};

// Computes all tokens as one text. Errors: those of make_model_plan; of reading the file; OutOfMemory.
Result<ReferenceRun> run_reference(const ModelSource& file, const Device& host,
                                   std::span<const int32_t> tokens, const ReferenceSettings&);

}  // namespace gimbal::crossval
