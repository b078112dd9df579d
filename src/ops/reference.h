// The reference: every op in plain double precision, which all backends are checked against. Slow and simple
// on purpose. Each op's reference is in its file of ops/defs/.
#pragma once
#include <cmath>
#include <span>
#include <vector>

#include "ops/op.h"
#include "tensor/shape.h"

namespace gimbal::reference {

struct Tensor {
  Shape shape;  // `type` is the source format; the values are doubles
  std::vector<double>
      values;  // shape.count() of them, dim[0] fastest. Caches: [hd, heads, kPagePositions, pages]
  // Of integers and bool: the same numbers, of which a double would not have all digits; of u64 their bits.
  std::vector<int64_t> whole = {};
};

// Zeros.
Tensor empty(const Shape& shape);

// Decodes dense bytes of any decodable format (tensor/quant.h), of plain numbers and of activations.
Tensor decode(const Shape& shape, const void* dense);

// In place of a magnitude: no rounding is allowed, nor another sign of 0.
inline constexpr double kExact = -1;

// The arguments of an op's reference.
struct Call {
  const OpParams& params;
  std::span<const Tensor* const> in;
  Tensor& out;
  int rows;         // to compute, of the rows input
  size_t computed;  // values in that many rows of the output
  std::vector<double>* magnitude;
  Tensor* state;  // for ops with a state: updated in place
  std::vector<double>* state_magnitude;

  const std::vector<double>& x(size_t i = 0) const { return in[i]->values; }
  // `terms`: the sum of the absolute values of all summands; 0 if nothing is rounded.
  void put(size_t i, double value, double terms) const {
    out.values[i] = value;
    if (magnitude) (*magnitude)[i] = terms;
  }
  void put(size_t i, double value) const { put(i, value, std::fabs(value)); }
  void put_exact(size_t i, double value) const { put(i, value, kExact); }
  const std::vector<int64_t>& whole(size_t i = 0) const { return in[i]->whole; }
  // Of integers; always exact.
  void put_whole(size_t i, int64_t value) const {
    put_exact(i, double(value));
    out.whole[i] = value;
  }
  // A number of an input as it is.
  void move(size_t to, size_t input, size_t from) const {
    if (out.whole.empty()) put_exact(to, x(input)[from]);
    else put_whole(to, whole(input)[from]);
  }
  void put_state(size_t i, double value, double terms) const {
    state->values[i] = value;
    if (state_magnitude) (*state_magnitude)[i] = terms;
  }
};

// Runs one op. `out` has its shape and, for ops that write to a cache, the cache's previous contents. `rows`:
// the number of valid rows; further rows of `out` are unchanged. `magnitude`, if given, receives for every
// output value the sum of the absolute values of its summands: error bounds of float arithmetic are multiples
// of it. `state` and `state_magnitude`: the same for an op's state, which is not one of its inputs.
void run(OpKind, const OpParams&, std::span<const Tensor* const> inputs, Tensor& out, int rows,
         std::vector<double>* magnitude = nullptr, Tensor* state = nullptr,
         std::vector<double>* state_magnitude = nullptr);

}  // namespace gimbal::reference
