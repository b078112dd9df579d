// The launches of linear algebra. A lane has a column of a right side, or a whole matrix.
#include <algorithm>

#include "gpu/tensors/launch.h"
#include "gpu/tensors/launches.h"

namespace gimbal::gpu {
namespace {

// Where the matrices of the first two dims begin.
Operand matrices_of(const gimbal_value& v) {
  gimbal_value outer = v;
  outer.rank = uint8_t(v.rank - 2);
  std::copy(v.dim + 2, v.dim + v.rank, outer.dim), std::copy(v.stride + 2, v.stride + v.rank, outer.stride);
  return operand(outer);
}
TensorLaunch& read_matrices(TensorLaunch& l, int i, const gimbal_value& v) {
  return l.read_with_memory(i, matrices_of(v), operand(v));
}

}  // namespace

void plan_solve(OpPlan& o) {
  const gimbal_value &a = o.in(0), &b = o.in(1), &y = o.out();
  TensorLaunch l(o, "solve");
  read_matrices(l, 0, a), read_matrices(l, 1, b);
  l.write(operand(y));
  l.numbers({y.dim[0], y.dim[1], a.stride[0], a.stride[1], b.stride[0], b.stride[1], o.op.param.i[0] != 0,
             o.op.param.i[1] != 0});
  l.launch(uint64_t(operand(y).count() / y.dim[1]));
}

void plan_cholesky(OpPlan& o) {
  const gimbal_value &a = o.in(0), &y = o.out();
  TensorLaunch l(o, "cholesky");
  read_matrices(l, 0, a).write(operand(y));
  l.numbers({a.dim[0], a.stride[0], a.stride[1]});
  l.launch(uint64_t(operand(y).count() / (y.dim[0] * y.dim[1])));
}

void plan_qr(OpPlan& o) {
  const gimbal_value &a = o.in(0), &y = o.out();
  TensorLaunch l(o, "qr");
  read_matrices(l, 0, a).write(operand(y));
  l.numbers({a.dim[0], a.dim[1], y.dim[0], a.stride[0], a.stride[1]});
  l.launch(uint64_t(operand(y).count() / (y.dim[0] * y.dim[1])));
}

}  // namespace gimbal::gpu
