// The launches of formats in blocks: decoding, encoding, products of chosen matrices.
#include <algorithm>
#include <numeric>

#include "gpu/tensors/block_formats.h"
#include "gpu/tensors/launch.h"
#include "gpu/tensors/launches.h"
#include "ops/op.h"
#include "tensor/encode/fits.h"
#include "tensor/encode/levels.h"

namespace gimbal::gpu {
namespace {

// Blocks as bytes: the first dim has a row's.
Operand bytes_of(const gimbal_value& v) {
  const auto& f = info(DType(v.dtype));
  gimbal_value all = v;
  all.dtype = uint8_t(DType::U8);
  for (int i = 1; i < v.rank; i++) all.stride[i] = v.stride[i] / f.block * f.bytes;
  all.dim[0] = v.dim[0] / f.block * f.bytes;
  return operand(all);
}

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

namespace {

// ggml's formulas for blocks of 32.
void encode(OpPlan& o, DType t, const Operand& x, int64_t blocks) {
  const bool spans = t == DType::Q4_1 || t == DType::Q5_1;
  const int64_t bits = t == DType::Q8_0 ? 8 : t == DType::Q5_0 || t == DType::Q5_1 ? 5 : 4;
  TensorLaunch l(o, "encode");
  l.read(0, x).write(bytes_of(o.out()));
  l.numbers({blocks, int64_t(info(t).bytes), bits, spans});
  l.launch(uint64_t(blocks + 1) / 2);
}

// As many blocks for each lane as make whole words.
int64_t blocks_of_lane(DType t) { return 4 / std::gcd(int64_t(info(t).bytes), int64_t(4)); }
uint64_t lanes_for(DType t, int64_t blocks) {
  return uint64_t(blocks + blocks_of_lane(t) - 1) / uint64_t(blocks_of_lane(t));
}

void encode_few(OpPlan& o, DType t, const Operand& x, int64_t blocks) {
  const int64_t rule = t == DType::TQ1_0                        ? 1
                       : t == DType::Q1_0                       ? 2
                       : t == DType::MXFP4 || t == DType::NVFP4 ? 3
                                                                : 0;
  TensorLaunch l(o, "encode_few");
  l.read(0, x).write(bytes_of(o.out()));
  for (uint32_t n : block_format(t).number) l.number(n);
  l.numbers({rule, t == DType::NVFP4 ? 16 : info(t).block, blocks_of_lane(t), blocks});
  l.launch(lanes_for(t, blocks));
}

struct ScaledFormat {
  float least, most, first_level, last_level;
  std::span<const float> factors;
};
ScaledFormat scaled_format(DType t) {
  if (t == DType::Q6_K) return {-128, 127, -32, 31, encoding::kFactors6};
  if (t == DType::Q3_K) return {-32, 31, -4, 3, encoding::kFactors3};
  return {-32, 31, encoding::NonLinear::first, encoding::NonLinear::last, encoding::kFactorsNonLinear};
}

void encode_scaled(OpPlan& o, DType t, const Operand& x, int64_t blocks) {
  const BlockFormat f = block_format(t);
  const ScaledFormat s = scaled_format(t);
  TensorLaunch l(o, "encode_scaled");
  l.read(0, x).write(bytes_of(o.out()));
  if (!f.table.empty()) l.read(1, constants(o, f.table));
  for (uint32_t n : f.number) l.number(n);
  l.numbers({blocks_of_lane(t), blocks});
  for (float v : {s.least, s.most, s.first_level, s.last_level}) l.number(v);
  l.number(uint32_t(s.factors.size()));
  for (float v : s.factors) l.number(v);
  l.launch(lanes_for(t, blocks));
}

struct OffsetFormat {
  int64_t top, most, rounds;
  std::span<const float> covers, shifts;
};
OffsetFormat offset_format(DType t) {
  if (t == DType::Q2_K) return {3, 15, 2, encoding::kCovers2, encoding::kShifts2};
  if (t == DType::Q4_K) return {15, 63, 1, encoding::kCovers4, encoding::kShifts4};
  return {31, 63, 1, encoding::kCovers5, encoding::kShifts5};
}

void encode_offsets(OpPlan& o, DType t, const Operand& x, int64_t blocks) {
  const OffsetFormat f = offset_format(t);
  TensorLaunch l(o, "encode_offsets");
  l.read(0, x).write(bytes_of(o.out()));
  for (uint32_t n : block_format(t).number) l.number(n);
  l.numbers({f.top, f.most, blocks, f.rounds, encoding::unit_rounds(int(f.most)), int64_t(f.covers.size()),
             int64_t(f.shifts.size())});
  for (float v : f.covers) l.number(v);
  for (float v : f.shifts) l.number(v);
  l.launch(uint64_t(blocks));
}

void encode_uneven(OpPlan& o, DType t, const Operand& x, int64_t blocks) {
  const BlockFormat f = block_format(t);
  TensorLaunch l(o, "encode_uneven");
  l.read(0, x).write(bytes_of(o.out())).read(1, constants(o, f.table));
  for (uint32_t n : f.number) l.number(n);
  l.numbers({blocks_of_lane(t), blocks});
  for (float v : {encoding::NonLinear::first, encoding::NonLinear::last}) l.number(v);
  l.number(uint32_t(std::size(encoding::kFactorsNonLinear)));
  for (float v : encoding::kFactorsNonLinear) l.number(v);
  l.launch(lanes_for(t, blocks));
}

}  // namespace

void plan_encode(OpPlan& o) {
  const DType t = DType(o.out().dtype);
  const Operand x = operand(o.in(0));
  const int64_t blocks = x.count() / info(t).block;
  if (has(kEncodedFew, t)) encode_few(o, t, x, blocks);
  else if (has(kEncodedScaled, t)) encode_scaled(o, t, x, blocks);
  else if (has(kEncodedOffsets, t)) encode_offsets(o, t, x, blocks);
  else if (t == DType::IQ4_NL) encode_uneven(o, t, x, blocks);
  else encode(o, t, x, blocks);
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
