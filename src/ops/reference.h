// What every op means, in plain double precision: the judge of all backends. Slow and obvious on purpose. The
// meaning of each op lies in its file of ops/defs/.
#pragma once
#include <cmath>
#include <span>
#include <vector>

#include "ops/op.h"
#include "tensor/shape.h"

namespace gimbal::reference {

struct Tensor {
  Shape shape;  // `type` is where the values came from; they are held as doubles
  std::vector<double>
      values;  // shape.count() of them, dim[0] fastest. Caches: [hd, heads, kPagePositions, pages]
};

// Decodes dense bytes of any format that can be decoded (tensor/quant.h), i32 and activations included.
Tensor decode(const Shape& shape, const void* dense);

// One op being computed: what an op's reference is given.
struct Call {
  const OpParams& params;
  std::span<const Tensor* const> in;
  Tensor& out;
  int rows;         // to compute, of the input that brings the rows
  size_t computed;  // values in as many rows of the output
  std::vector<double>* magnitude;
  Tensor* state;  // of ops that have one: as it was, and as it becomes
  std::vector<double>* state_magnitude;

  const std::vector<double>& x(size_t i = 0) const { return in[i]->values; }
  // `terms`: the sum of the absolute values of what was added up. 0 where nothing is rounded.
  void put(size_t i, double value, double terms) const {
    out.values[i] = value;
    if (magnitude) (*magnitude)[i] = terms;
  }
  void put(size_t i, double value) const { put(i, value, std::fabs(value)); }
  void put_state(size_t i, double value, double terms) const {
    state->values[i] = value;
    if (state_magnitude) (*state_magnitude)[i] = terms;
  }
};

// Runs one op; `out` has its shape set and, for ops that write to a cache, holds the cache before. `rows`:
// how many rows are real; further ones keep what `out` held. `magnitude`, when given, gets for every output
// value the sum of the absolute values of the terms that were added up: error bounds of float arithmetic are
// multiples of it. `state`, `state_magnitude`: likewise of an op's state, which is not among what it reads.
void run(OpKind, const OpParams&, std::span<const Tensor* const> inputs, Tensor& out, int rows,
         std::vector<double>* magnitude = nullptr, Tensor* state = nullptr,
         std::vector<double>* state_magnitude = nullptr);

}  // namespace gimbal::reference
