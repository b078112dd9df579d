// The launches of products, convolutions, resampling and random numbers.
#include <algorithm>

#include "gpu/tensors/launch.h"
#include "gpu/tensors/launches.h"
#include "ops/op.h"

namespace gimbal::gpu {

// Row and column of an output are a row of a and a column of b; k leads along the dims that repeat.
void plan_product(OpPlan& o) {
  const gimbal_value &a = o.in(0), &b = o.in(1), &y = o.out();
  gimbal_value rows = y, columns = y;
  for (int i = 0; i < y.rank; i++) rows.stride[i] = a.stride[i], columns.stride[i] = b.stride[i];
  rows.slot = a.slot, rows.offset = a.offset, rows.stride[0] = 0;
  columns.slot = b.slot, columns.offset = b.offset, columns.stride[1] = 0;
  TensorLaunch l(o, "product");
  l.read_with_memory(0, operand(rows), operand(a)).read_with_memory(1, operand(columns), operand(b));
  l.write(operand(y));
  l.numbers({a.dim[0], a.stride[0], b.stride[1]});
  l.launch_elements();
}

void plan_conv(OpPlan& o) {
  const gimbal_value &x = o.in(0), &w = o.in(1);
  TensorLaunch l(o, "conv");
  l.read(0, operand(x)).read(1, operand(w)).write(operand(o.out()));
  for (int i = 0; i < int(ConvParam::Count); i++) l.numbers({o.op.param.i[i]});
  for (const gimbal_value* v : {&x, &w})
    for (int i = 0; i < 4; i++) l.numbers({v->stride[i]});
  for (const gimbal_value* v : {&x, &w})
    for (int i = 0; i < 4; i++) l.numbers({v->dim[i]});
  l.launch_elements();
}

void plan_resample(OpPlan& o) {
  const gimbal_value &x = o.in(0), &y = o.out();
  gimbal_value rows = x;
  std::copy(std::begin(y.dim), std::end(y.dim), rows.dim);
  rows.stride[0] = 0;
  TensorLaunch l(o, "resample");
  l.read_with_memory(0, operand(rows), operand(x)).read(1, operand(o.in(1))).read(2, operand(o.in(2)));
  l.write(operand(y));
  l.numbers({o.in(1).dim[0], x.stride[0], y.dim[0]});
  l.launch_elements();
}

void plan_random(OpPlan& o) {
  computed_as(o, DType::F32, [&](const Operand& to) {
    TensorLaunch l(o, "random");
    l.read(0, operand(o.in(0))).write(to);
    l.numbers({o.op.param.i[0]});
    l.launch_elements();
  });
}

}  // namespace gimbal::gpu
