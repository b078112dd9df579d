#include "device/fit.h"

#include "base/format.h"
#include "ops/op.h"
#include "tensor/dtype.h"

namespace gimbal {
namespace {

std::string missing_features(uint32_t missing, const gimbal_device_info& d) {
  std::string out;
  for (int bit = 0; d.feature_names && d.feature_names[bit]; bit++)
    if (missing >> bit & 1) out += (out.empty() ? "" : ", ") + std::string(d.feature_names[bit]);
  return out;
}

}  // namespace

std::optional<std::string> why_not(const gimbal_kernel_info& row, const gimbal_op& op, const gimbal_value* v,
                                   const gimbal_device_info& device, bool allow_fast) {
  if (row.op != op.kind)
    return row.op < uint16_t(OpKind::Count) ? format("computes {}", kOps[row.op].name)
                                            : "computes something that this version does not know";
  if (uint32_t missing = row.needs & ~device.features)
    return format("needs {}, which the device lacks or was told not to use",
                  missing_features(missing, device));
  const gimbal_value& a = v[op.in[0]];
  const gimbal_value& o = v[op.out];
  if (!has(row.in0, DType(a.dtype))) return format("does not take {}", info(DType(a.dtype)).name);
  if (op.inputs > 1 && !has(row.in1, DType(v[op.in[1]].dtype)))
    return format("does not take {} with it", info(DType(v[op.in[1]].dtype)).name);
  if (!has(row.out, DType(o.dtype))) return format("does not give {}", info(DType(o.dtype)).name);
  if (row.layout != a.layout)
    return row.layout == GIMBAL_PACKED ? "takes packed weights only" : "takes another memory layout";
  if (row.k_multiple > 1 && a.dim[0] % row.k_multiple)
    return format("rows must be a multiple of {} values, these have {}", row.k_multiple, a.dim[0]);
  if (o.dim[o.rank - 1] < row.min_rows)
    return format("serves {} rows and more, and this has {}", row.min_rows, o.dim[o.rank - 1]);
  if (row.max_rows && o.dim[o.rank - 1] > row.max_rows)
    return format("computes at most {} rows at once", row.max_rows);
  if (row.numerics == GIMBAL_FAST && !allow_fast)
    return "adds in an order of its own (fast), and exact results were asked for";
  return std::nullopt;
}

}  // namespace gimbal
