// The launches of ops along rows: reductions, softmax, normalize, sums up to each place, orders. Results that
// are narrower than a word are computed in scratch memory and converted: a group writes no part of a word.
#include <algorithm>

#include "base/format.h"
#include "gpu/tensors/launch.h"
#include "gpu/tensors/launches.h"
#include "ops/op.h"

namespace gimbal::gpu {
namespace {

constexpr int64_t kLongestRow = int64_t(1)
                                << 30;  // the sums of chunks of chunks of 1,024 values are one chunk

uint32_t row_of(OpPlan& o, int64_t n) {
  if (n >= kLongestRow)
    o.failure = {
        Failure::Unsupported,
        format("a row has {} values, but a GPU reduces less than 2^30 to one number: reduce in parts", n)};
  return uint32_t(n);
}
int64_t first_dims(const gimbal_value& v, int64_t dims) {
  int64_t n = 1;
  for (int64_t i = 0; i < dims; i++) n *= v.dim[i];
  return n;
}

}  // namespace

void plan_reduce(OpPlan& o) {
  const auto which = Reduction(o.op.param.i[0]);
  const Operand x = operand(o.in(0));
  const int64_t n = first_dims(o.in(0), o.op.param.i[1]), rows = x.count() / n;
  const bool extreme = which >= Reduction::Min && which <= Reduction::ArgMax;
  const char* kernel = extreme                    ? "reduce_extreme"
                       : which == Reduction::Prod ? "reduce_prod"
                       : which >= Reduction::Any  ? "reduce_truth"
                       : which == Reduction::Var  ? "reduce_var"
                                                  : "reduce_sum";
  const bool place = which == Reduction::ArgMin || which == Reduction::ArgMax;
  computed_as(o, place ? DType::I32 : DType::F32, [&](const Operand& to) {
    TensorLaunch l(o, kernel);
    l.read(0, x).write(to).row(row_of(o, n));
    l.number(uint32_t(which)), l.number(float(n));
    l.launch_groups(uint64_t(rows));
  });
}

void plan_reduce_int(OpPlan& o) {
  const auto which = Reduction(o.op.param.i[0]);
  const Operand x = operand(o.in(0));
  const int64_t n = first_dims(o.in(0), o.op.param.i[1]), rows = x.count() / n;
  const bool place = which == Reduction::ArgMin || which == Reduction::ArgMax;
  computed_as(o, place ? DType::I32 : DType::I64, [&](const Operand& to) {
    TensorLaunch l(o, "reduce_int");
    l.read(0, x).write(to).row(uint32_t(n));
    l.number(uint32_t(which));
    l.launch_groups(uint64_t(rows));
  });
}

void plan_softmax(OpPlan& o) {
  const Operand x = operand(o.in(0));
  const int64_t n = o.in(0).dim[0], rows = x.count() / n;
  const Operand facts = scratch(o, DType::F32, 2 * rows);
  TensorLaunch first(o, "softmax_rows");
  first.read(0, x).write(facts).row(row_of(o, n));
  first.launch_groups(uint64_t(rows));
  TensorLaunch second(o, "softmax");
  second.read(0, x).read(1, facts).write(operand(o.out())).row(uint32_t(n)).after_those_before();
  second.numbers({o.op.param.i[0]});
  second.launch_elements();
}

void plan_normalize(OpPlan& o) {
  const Operand x = operand(o.in(0));
  const int64_t n = o.in(0).dim[0], rows = x.count() / n;
  const Operand facts = scratch(o, DType::F32, 2 * rows);
  TensorLaunch first(o, "normalize_rows");
  first.read(0, x).write(facts).row(row_of(o, n));
  first.numbers({o.op.param.i[0] != 0}), first.number(float(o.op.param.f[0])), first.number(float(n));
  first.launch_groups(uint64_t(rows));
  const bool bias = o.op.inputs > 2;
  const Operand scaled = bias ? scratch(o, DType::F32, x.count()) : operand(o.out());
  TensorLaunch second(o, "normalize_values");
  second.read(0, x).read(1, facts).write(scaled).row(uint32_t(n)).after_those_before();
  if (o.op.inputs > 1) second.read(2, operand(o.in(1)));
  second.numbers({o.op.inputs > 1});
  second.launch_elements();
  if (bias) add(o, scaled, repeated(o.in(2), rows), operand(o.out()));
}

static void plan_sums(OpPlan& o, const char* kernel, DType as) {
  const Operand x = operand(o.in(0));
  const int64_t n = o.in(0).dim[0];
  computed_as(o, as, [&](const Operand& to) {
    TensorLaunch l(o, kernel);
    l.read(0, x).write(to).row(uint32_t(n));
    l.launch(uint64_t(x.count() / n));
  });
}
void plan_cumsum(OpPlan& o) { plan_sums(o, "cumsum", DType::F32); }
void plan_cumsum_int(OpPlan& o) { plan_sums(o, "cumsum_int", DType::I64); }

// A merge sort: the first launch sorts runs of kRun values, each later one merges pairs of runs.
void plan_tensor_order(OpPlan& o) {
  constexpr int64_t kRun = 64;
  const gimbal_value& rows = o.in(0);
  const Operand x = operand(rows), y = operand(o.out());
  const bool values = o.op.param.i[1] != 0;
  const int64_t n = rows.dim[0];
  const Operand places = values ? scratch(o, DType::I32, x.count()) : y;
  const Operand other = n > kRun ? scratch(o, DType::I32, x.count()) : places;
  int joins = 0;
  for (int64_t run = kRun; run < n; run *= 2) joins++;
  auto room = [&](int joined) { return (joins - joined) % 2 ? other : places; };
  auto launch = [&](TensorLaunch& l, const Operand& to, int64_t run) {
    l.read(0, x).write(to).row(uint32_t(n));
    l.numbers({o.op.param.i[0] != 0, run});
    l.launch(uint64_t(x.count()));
  };
  TensorLaunch runs(o, "tensor_order");
  launch(runs, room(0), kRun);
  for (int joined = 1; joined <= joins; joined++) {
    TensorLaunch merge(o, "tensor_order_merge");
    merge.read(1, room(joined - 1)).after_those_before();
    launch(merge, room(joined), kRun << (joined - 1));
  }
  if (values) gather(o, rows, places, 0);
}

}  // namespace gimbal::gpu
