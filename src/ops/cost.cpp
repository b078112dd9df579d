#include "ops/cost.h"

#include "ops/op_def.h"

namespace gimbal {

Cost cost(OpKind kind, std::span<const Shape> in, const Shape& out, int64_t context) {
  const OpDef& op = def(kind);
  Cost c;
  for (const Shape& s : in) c.bytes_read += double(s.bytes());
  c.bytes_written = double(out.bytes());
  c.operations = op.operations * double(out.count());
  if (op.cost) op.cost(c, in, out, context);
  return c;
}

}  // namespace gimbal
