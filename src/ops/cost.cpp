#include "ops/cost.h"

namespace gimbal {

Cost cost(OpKind kind, std::span<const Shape> in, const Shape& out, int64_t context) {
  Cost c;
  auto all_inputs = [&] {
    for (const Shape& s : in) c.bytes_read += double(s.bytes());
  };
  c.bytes_written = double(out.bytes());
  switch (kind) {
    case OpKind::Embed:
      c.bytes_read = double(row_bytes(in[0].type, in[0].dim[0])) * in[1].dim[0];
      c.operations = double(out.count());
      break;
    case OpKind::MatMul:
      all_inputs();
      c.operations = 2.0 * double(in[0].count()) * in[1].dim[1];
      break;
    case OpKind::RmsNorm: all_inputs(), c.operations = 4.0 * double(out.count()); break;
    case OpKind::Quantize: all_inputs(), c.operations = 3.0 * double(out.count()); break;
    case OpKind::Rope: all_inputs(), c.operations = 3.0 * double(out.count()); break;
    case OpKind::SwiGlu: all_inputs(), c.operations = 16.0 * double(out.count()); break;
    case OpKind::SquaredReluGlu: all_inputs(), c.operations = 3.0 * double(out.count()); break;
    case OpKind::Scale:
    case OpKind::Add: all_inputs(), c.operations = double(out.count()); break;
    case OpKind::CacheWrite:
      c.bytes_read = double(in[1].bytes());
      c.bytes_written = double(row_bytes(in[0].type, in[1].dim[0])) * double(in[1].rows());
      break;
    case OpKind::Attention: {
      // Every row reads the keys and values before it; heads that share a KV head read them once.
      double kv_bytes = double(row_bytes(in[1].type, in[1].dim[0])) * in[1].dim[1] * double(context);
      c.bytes_read = double(in[0].bytes()) + 2.0 * kv_bytes * in[0].dim[2];
      c.operations = 4.0 * double(in[0].count()) * double(context);
      break;
    }
    case OpKind::SelectRows: c.bytes_read = double(out.bytes()); break;
    case OpKind::TopK:
    case OpKind::Sort:
    case OpKind::ArgSort: {  // comparisons: one for each value and halving of a row
      all_inputs();
      double halvings = 1;
      for (int64_t n = kind == OpKind::TopK ? 1 : in[0].dim[0]; n > 2; n = (n + 1) / 2) halvings++;
      c.operations = double(in[0].count()) * halvings;
      break;
    }
  }
  return c;
}

}  // namespace gimbal
