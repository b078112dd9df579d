// The launches of maps, casts and moves.
#include <algorithm>
#include <limits>
#include <numeric>

#include "gpu/tensors/launch.h"
#include "gpu/tensors/launches.h"
#include "ops/maps.h"
#include "ops/op.h"
#include "tensor/half.h"

namespace gimbal::gpu {
namespace {

constexpr const char* kMapKernels[] = {"map_int", "map_1", "map_2", "map_3", "map_4", "map_5", "map_6"};
static_assert(std::size(kMapKernels) == kMapGroups + 1);

// A number as its operand's format has it.
float rounded(double v, DType t) {
  const auto f = float(v);
  if (t == DType::F16) return half_to_float(float_to_half(f));
  return t == DType::BF16 ? bf16_to_float(float_to_bf16(f)) : f;
}
// Without its fraction, and within 64 bits; as maps of integers take it on the CPU.
int64_t whole(double v) {
  if (!(v > -0x1p63)) return v != v ? 0 : std::numeric_limits<int64_t>::min();
  return v >= 0x1p63 ? std::numeric_limits<int64_t>::max() : int64_t(v);
}

void read_operands(TensorLaunch& l, const OpPlan& o) {
  l.read(0, operand(o.in(0)));
  if (o.op.inputs > 1) l.read(1, operand(o.in(1)));
  l.write(operand(o.out()));
}
// Functions of one operand have no other, whatever the numbers say.
uint32_t operands_of(const OpPlan& o) {
  const auto which = Operands(o.op.param.i[1]);
  return which == Operands::Values && o.op.inputs < 2 ? uint32_t(Operands::NumberSecond) : uint32_t(which);
}

// What cast.k must know of a format.
struct FormatParts {
  bool is_float;
  int64_t mantissa, bias, most;
  bool infinity;
};
FormatParts parts_of(DType t) {
  switch (t) {
    case DType::F32: return {true, 23, 127, 255, true};
    case DType::F16: return {true, 10, 15, 31, true};
    case DType::BF16: return {true, 7, 127, 255, true};
    case DType::F64: return {true, 52, 1023, 2047, true};
    case DType::F8_E4M3: return {true, 3, 7, 15, false};
    case DType::F8_E5M2: return {true, 2, 15, 31, true};
    default: break;
  }
  const bool has_sign = t == DType::I8 || t == DType::I16 || t == DType::I32 || t == DType::I64;
  return {false, 8 * int64_t(info(t).bytes), has_sign, 0, false};
}

}  // namespace

void plan_map(OpPlan& o) {
  const auto function = MapFunction(o.op.param.i[0]);
  TensorLaunch l(o, kMapKernels[map_group(function)]);
  read_operands(l, o);
  l.numbers({o.op.param.i[0], operands_of(o)});
  l.number(rounded(o.op.param.f[0], DType(o.in(0).dtype)));
  l.number(float(o.op.param.f[0])), l.number(float(o.op.param.f[1]));
  l.launch_elements();
}

void plan_map_int(OpPlan& o) {
  TensorLaunch l(o, "map_int");
  read_operands(l, o);
  l.numbers({o.op.param.i[0], operands_of(o)});
  // Narrower formats wrap it.
  const DType t = DType(o.in(0).dtype);
  uint64_t number = uint64_t(o.op.param.i[2]);
  if (const int bits = 8 * info(t).bytes; bits < 64 && t != DType::Bool) number &= (uint64_t(1) << bits) - 1;
  if (t == DType::Bool) number = number != 0;
  l.number64(number);
  l.number64(uint64_t(whole(o.op.param.f[0]))), l.number64(uint64_t(whole(o.op.param.f[1])));
  l.launch_elements();
}

static void convert(TensorLaunch& l, const Operand& from, const Operand& to) {
  l.read(0, from).write(to);
  for (DType t : {from.type, to.type}) {
    const FormatParts f = parts_of(t);
    l.numbers({f.is_float, f.mantissa, f.bias, f.most, f.infinity});
  }
  l.launch_elements();
}
void plan_cast(OpPlan& o) {
  const Operand from = operand(o.in(0)), to = operand(o.out());
  TensorLaunch l(o, from.type == to.type ? "tensor_copy" : "tensor_cast");
  convert(l, from, to);
}

void cast(OpPlan& o, const Operand& from, const Operand& to) {
  TensorLaunch l(o, "tensor_cast");
  convert(l.after_those_before(), from, to);
}
void add(OpPlan& o, const Operand& a, const Operand& b, const Operand& to) {
  TensorLaunch l(o, kMapKernels[map_group(MapFunction::Add)]);
  l.read(0, a).read(1, b).write(to).after_those_before();
  l.numbers({int64_t(MapFunction::Add), int64_t(Operands::Values)});
  l.launch_elements();
}
Operand repeated(const gimbal_value& row, int64_t rows) {
  gimbal_value all = row;
  all.rank = 2, all.dim[1] = rows, all.stride[1] = 0;
  return operand(all);
}

void plan_select(OpPlan& o) {
  TensorLaunch l(o, "tensor_select");
  for (int i = 0; i < 3; i++) l.read(i, operand(o.in(i)));
  l.write(operand(o.out())).launch_elements();
}

// The elements of x that belong to the ids' places, as if each id were 0.
void gather(OpPlan& o, const gimbal_value& x, const Operand& ids, int64_t along) {
  gimbal_value first = x;
  std::copy(std::begin(o.out().dim), std::end(o.out().dim), first.dim);
  first.stride[along] = 0;
  Operand lines = operand(first);
  TensorLaunch l(o, "tensor_gather");
  l.read_with_memory(0, lines, operand(x)).read(1, ids).write(operand(o.out()));
  l.numbers({x.stride[along], x.dim[along]});
  if (ids.slot == Place::kScratch) l.after_those_before();  // an earlier launch computes them
  l.launch_elements();
}
void plan_gather(OpPlan& o) { gather(o, o.in(0), operand(o.in(1)), o.op.param.i[0]); }

void plan_scatter(OpPlan& o) {
  const gimbal_value &ids = o.in(1), &to = o.out();
  const int64_t along = o.op.param.i[0];
  const int64_t inner = std::accumulate(to.dim, to.dim + along, int64_t(1), std::multiplies<>());
  TensorLaunch l(o, "tensor_scatter");
  l.read(0, operand(ids)).read(1, operand(o.in(2))).write(operand(to));
  l.numbers({inner, to.dim[along], ids.dim[along], o.op.param.i[1]});
  l.launch_elements();
}

void plan_check_ids(OpPlan& o) {
  const Operand ids = operand(o.in(0));
  TensorLaunch l(o, "check_ids");
  l.read(0, ids).write(operand(o.out()));
  l.number64(uint64_t(o.op.param.i[0]));
  l.number(uint32_t(ids.count()));
  l.launch(1);
}

void plan_assign(OpPlan& o) {
  const gimbal_value& v = o.out();
  const Operand to = operand(v);
  // Elements from one index of a dim to the next, and dims by falling strides.
  struct Dim {
    int64_t stride, size, elements;
  };
  std::vector<Dim> dims;
  for (int64_t i = 0, n = 1; i < v.rank; n *= v.dim[i++])
    if (v.dim[i] > 1) dims.push_back({v.stride[i], v.dim[i], n});
  std::sort(dims.begin(), dims.end(),
            [](const Dim& a, const Dim& b) { return std::abs(a.stride) > std::abs(b.stride); });
  const auto range = to.range();
  const uint64_t size = uint64_t(info(to.type).bytes), start = range.begin / 256 * 256;
  const uint64_t lowest = (range.begin - start) / size, end = (range.end - start) / size,
                 each = size < 4 ? 4 / size : 1;
  TensorLaunch l(o, "tensor_assign");
  l.read(0, operand(o.in(1))).write(to);
  l.numbers({int64_t(lowest), int64_t(dims.size())});
  for (const Dim& d : dims) l.numbers({std::abs(d.stride), d.size, d.stride < 0, d.elements});
  l.launch((end + each - 1) / each - lowest / each);
}

}  // namespace gimbal::gpu
