// The minimum traffic and arithmetic of an op on any device: the base of every "% of the limit".
#pragma once
#include <span>

#include "ops/op.h"
#include "tensor/shape.h"

namespace gimbal {

struct Cost {
  double bytes_read = 0;  // weights and inputs, each once
  double bytes_written = 0;
  double operations = 0;  // multiplications and additions, counted separately
  Cost& operator+=(const Cost& o) {
    bytes_read += o.bytes_read, bytes_written += o.bytes_written, operations += o.operations;
    return *this;
  }
};

// `context`: positions that attention reads per row (including its own). Shapes as recorded; row extents that
// are capacities are passed in as the actual number of rows.
Cost cost(OpKind, std::span<const Shape> inputs, const Shape& output, int64_t context = 1);

}  // namespace gimbal
