#include "ops/op_def.h"

#include "base/format.h"
#include "tensor/format.h"

namespace gimbal {

DType activation_type(DType w) { return format_of(w).x; }

Error ShapeCall::refuse(const std::string& rule) const {
  std::string shapes;
  for (const Shape& s : in) shapes += (shapes.empty() ? "" : ", ") + to_string(s);
  return {Code::Unsupported, format("{}({}): {}", info(kind).name, shapes, rule), ""};
}

Result<Shape> output_shape(OpKind kind, const OpParams& params, std::span<const Shape> in) {
  const ShapeCall call{kind, params, in};
  if (!is_known(kind)) return call.refuse("unknown op");
  if (int(in.size()) < info(kind).min_inputs || int(in.size()) > info(kind).max_inputs)
    return call.refuse("wrong number of inputs");
  for (const Shape& s : in) {
    if (s.dim[0] % info(s.type).block)
      return call.refuse("a row is not a whole number of blocks of its format");
    for (int64_t d : s.dim)
      if (d < 1) return call.refuse("every dimension must be at least 1");
  }
  return def(kind).shape(call);
}

}  // namespace gimbal
