// The launches of formats in blocks: decoding, and products of chosen matrices. encoders.cpp has those of
// encoding.
#include <algorithm>

#include "gpu/tensors/block_formats.h"
#include "gpu/tensors/launch.h"
#include "gpu/tensors/launches.h"

namespace gimbal::gpu {

Operand bytes_of(const gimbal_value& v) {
  const auto& f = info(DType(v.dtype));
  gimbal_value all = v;
  all.dtype = uint8_t(DType::U8);
  for (int i = 1; i < v.rank; i++) all.stride[i] = v.stride[i] / f.block * f.bytes;
  all.dim[0] = v.dim[0] / f.block * f.bytes;
  return operand(all);
}

namespace {

void decode(OpPlan& o, const gimbal_value& blocks, const Operand& to) {
  const BlockFormat f = block_format(DType(blocks.dtype));
  TensorLaunch l(o, "decode");
  l.read(0, bytes_of(blocks)).write(to);
  if (!f.table.empty()) l.read(1, constants(o, f.table));
  for (uint32_t n : f.number) l.number(n);
  l.launch_elements();
}

}  // namespace

void plan_decode(OpPlan& o) {
  const Operand to = operand(o.out());
  const bool floats = to.type == DType::F32 || to.type == DType::F16 || to.type == DType::BF16;
  computed_as(o, floats ? to.type : DType::F32, [&](const Operand& out) { decode(o, o.in(0), out); });
}

// Matrices in blocks are decoded first, all of them.
void plan_indexed(OpPlan& o) {
  const gimbal_value &w = o.in(0), &x = o.in(1), &y = o.out();
  Operand matrices = operand(w);
  const bool blocks = info(DType(w.dtype)).block > 1;
  if (blocks) {
    matrices = scratch(o, DType::F32, w.dim[0] * w.dim[1] * w.dim[2]);
    decode(o, w, matrices);
  }
  gimbal_value rows = x;
  std::copy(std::begin(y.dim), std::end(y.dim), rows.dim);
  rows.stride[0] = 0;
  if (x.dim[1] == 1) rows.stride[1] = 0;
  TensorLaunch l(o, "indexed");
  l.read(0, matrices)
      .read_with_memory(1, operand(rows), operand(x))
      .read(2, operand(o.in(2)))
      .write(operand(y));
  if (blocks) l.after_those_before();
  l.numbers({w.dim[0], x.stride[0], w.dim[1], w.dim[2]});
  l.launch_elements();
}

}  // namespace gimbal::gpu
