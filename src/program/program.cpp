#include "program/program.h"

namespace gimbal {
namespace {

Shape with_rows(const ValueInfo& info, const gimbal_value& v, gimbal_step step) {
  Shape s = info.shape;
  if (v.extent == GIMBAL_STEP_ROWS) s.dim[s.rank - 1] = step.rows;
  if (v.extent == GIMBAL_OUT_ROWS) s.dim[s.rank - 1] = step.out_rows;
  return s;
}

}  // namespace

const char* name_of(Slot s) {
  static constexpr const char* kNames[kSlots] = {"weights", "kv cache", "step data", "activations", "output"};
  return kNames[size_t(s)];
}

OpParams Program::params(const gimbal_op& op) const {
  OpParams p;
  p.f[0] = op.param.f[0];
  p.i[0] = op.param.i[0];
  p.i[1] = op.param.i[1];
  return p;
}

std::vector<Shape> Program::input_shapes(const gimbal_op& op, gimbal_step step) const {
  std::vector<Shape> s;
  for (int i = 0; i < op.inputs; i++) s.push_back(with_rows(info[op.in[i]], values[op.in[i]], step));
  return s;
}

Shape Program::output_shape(const gimbal_op& op, gimbal_step step) const {
  return with_rows(info[op.out], values[op.out], step);
}

}  // namespace gimbal
