// What every op means, in plain double precision: the judge of all backends. Slow and obvious on purpose.
#pragma once
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

// Runs one op; `out` has its shape set and, for CacheWrite, holds the cache before. `rows`, `out_rows`: how
// many rows of the step are real; further ones keep what `out` held. `magnitude`, when given, gets for every
// output value the sum of the absolute values of the terms that were added up: error bounds of float
// arithmetic are multiples of it.
void run(OpKind, const OpParams&, std::span<const Tensor* const> inputs, Tensor& out, int rows, int out_rows,
         std::vector<double>* magnitude = nullptr);

}  // namespace gimbal::reference
