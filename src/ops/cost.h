// What an op must at least do, whoever does it: the base of every "% of the limit".
#pragma once
#include <span>

#include "ops/op.h"
#include "tensor/shape.h"

namespace gimbal {

struct Cost {
  double bytes_read = 0;  // weights and inputs, once each
  double bytes_written = 0;
  double operations = 0;  // multiplications and additions, both counted
  Cost& operator+=(const Cost& o) {
    bytes_read += o.bytes_read, bytes_written += o.bytes_written, operations += o.operations;
    return *this;
  }
};

// `context`: how many positions attention looks at, per row (its own included). Shapes as recorded; a row
// extent that is a capacity is passed in as the number really computed.
Cost cost(OpKind, std::span<const Shape> inputs, const Shape& output, int64_t context = 1);

}  // namespace gimbal
