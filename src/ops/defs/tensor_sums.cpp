// Ops of the tensor library that add along dims. The order of additions: docs/internals/numerics.md. A NaN is
// the result of min, max, argmin and argmax if there is one, the first one's place; -0 is below +0 there.
#include <algorithm>

#include "ops/defs/tensor_row.h"
#include "ops/reductions.h"

namespace gimbal::ops {
namespace {

Result<Shape> shape_of_reduce(const ShapeCall& c) {
  const int64_t which = c.params.i[0], reduced = c.params.i[1];
  if (which < 0 || which >= int64_t(Reduction::Count)) return c.refuse("there is no such reduction");
  if (reduced < 0 || reduced > c.in[0].rank) return c.refuse("x does not have as many dimensions");
  Shape to = without_first(c.in[0], int(reduced));
  const auto type = reduced_type(Reduction(which), c.in[0].type);
  if (!type) return c.refuse("not of this dtype");
  to.type = *type;
  return to;
}
Result<Shape> shape_of_cumsum(const ShapeCall& c) {
  if (!has(kFloats, c.in[0].type) && c.in[0].type != DType::I64)
    return c.refuse("x must be of floats or i64");
  return c.in[0];
}
// ---- references
void reduce_floats(const reference::Call& c, size_t n) {
  for (size_t i = 0; i < c.computed; i++) {
    const Row row{&c.x()[i * n], n, rounds_apart(c)};
    switch (const auto which = Reduction(c.params.i[0])) {
      case Reduction::Sum: put(c, i, row.sum()); break;
      case Reduction::Prod: put(c, i, row.product()); break;
      case Reduction::Mean: put(c, i, row.mean()); break;
      case Reduction::Var: put(c, i, row.squares(row.mean()) / Rounded{double(n)}); break;
      case Reduction::Min:
      case Reduction::Max: c.put_exact(i, row.x[row.extreme(which == Reduction::Max)]); break;
      case Reduction::ArgMin:
      case Reduction::ArgMax: c.put_whole(i, int64_t(row.extreme(which == Reduction::ArgMax))); break;
      case Reduction::Any:
      case Reduction::All: {
        const auto zeros = size_t(std::count(row.x, row.x + n, 0.0));
        c.put_whole(i, which == Reduction::Any ? zeros < n : zeros == 0);
        break;
      }
      case Reduction::Count: break;
    }
  }
}
void reduce_integers(const reference::Call& c, size_t n) {
  for (size_t i = 0; i < c.computed; i++) {
    const auto *first = &c.whole()[i * n], *last = first + n;
    uint64_t sum = 0, product = 1;
    for (const int64_t* v = first; v < last; v++) sum += uint64_t(*v), product *= uint64_t(*v);
    const auto *least = std::min_element(first, last), *largest = std::max_element(first, last);
    const auto zeros = size_t(std::count(first, last, 0));
    switch (Reduction(c.params.i[0])) {
      case Reduction::Sum: c.put_whole(i, int64_t(sum)); break;
      case Reduction::Prod: c.put_whole(i, int64_t(product)); break;
      case Reduction::Min: c.put_whole(i, *least); break;
      case Reduction::Max: c.put_whole(i, *largest); break;
      case Reduction::ArgMin: c.put_whole(i, least - first); break;
      case Reduction::ArgMax: c.put_whole(i, largest - first); break;
      case Reduction::Any: c.put_whole(i, zeros < n); break;
      case Reduction::All: c.put_whole(i, zeros == 0); break;
      default: break;  // of floats alone
    }
  }
}

// Chunks of kSumChunk values from +0, plus the total of the chunks before.
void sums_so_far(const reference::Call& c) {
  const size_t n = row_length(c);
  for (size_t first = 0; first < c.computed; first += n) {
    Rounded before, chunk, total;
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
      if (!c.whole().empty()) {
        c.put_whole(first + i, int64_t(sum += uint64_t(c.whole()[first + i])));
        continue;
      }
      if (i % kSumChunk == 0) before = total, chunk = {};
      chunk = chunk + Rounded{c.x()[first + i], 0};
      total = i < kSumChunk ? chunk : before + chunk;
      put(c, first + i, total);
    }
  }
}

// ---- cases: rows around vectors, chunks of additions and the sizes that kernels sort at once
std::vector<Case> reduce_cases(DType t) {
  std::vector<Case> all;
  if (!has(kNumbers & ~kStored, t)) return all;
  Numbers n = numbers_for(OpKind::Reduce, t);
  size_t next = 0;
  auto add = [&](Reduction which, const Shape& s, int64_t dims, Lies how, Fill fill) {
    OpParams p;
    p.i[0] = int64_t(which), p.i[1] = dims;
    all.push_back(
        tensor_case(OpKind::Reduce, t,
                    format("reduction {} of {} dims of {} {}", int(which), dims, to_string(s), name_of(how)),
                    {numbers(s, n, fill, how)}, p));
  };
  // Others are read into the format of the arithmetic, so they need fewer sizes.
  const bool floats = has(kFloats, t), own = computed_in(t) == t;
  for (int r = 0; r < int(Reduction::Count); r++) {
    const auto which = Reduction(r);
    if (!reduced_type(which, t)) continue;
    const bool adds = which <= Reduction::Prod, orders = which >= Reduction::Min;
    const Fill fill = orders ? Fill::Few : floats ? Fill::Normal : Fill::Wide;
    for (int64_t width : {1, 2, 15, 17, 33})
      if (own || width % 15 == 2) add(which, Shape(t, {width, 3}), 1, nth(kViews, next++), fill);
    add(which, Shape(t, {5, 4, 3}), 2, nth(kViews, next++), fill);
    add(which, Shape(t, {5, 4, 3}), 0, nth(kViews, next++), fill);
    add(which, Shape(t, {3, 2, 5}), 3, nth(kViews, next++), floats && adds ? Fill::Few : Fill::Wide);
    if (which == Reduction::Prod && floats) continue;  // of so many numbers of about 1, nothing is left
    for (int64_t width : {1023, 1024, 1025, 2049})
      if (own || width == 1025) add(which, Shape(t, {width}), 1, nth(kViews, next++), fill);
  }
  // Sums of columns, whose rows lie side by side.
  for (Reduction which : {Reduction::Sum, Reduction::Prod})
    for (const Shape& s : {Shape(t, {15, 17}), Shape(t, {2, 530}), Shape(t, {17, 64, 2})})
      add(which, s, 1, Lies::Turned, Fill::Normal);
  add(Reduction::Sum, Shape(t, {1025, 16}), 1, Lies::Turned, Fill::Normal);
  return all;
}

std::vector<Case> cumsum_cases(DType t) {
  std::vector<Case> all;
  if (!has(kFloats, t) && t != DType::I64) return all;
  Numbers n = numbers_for(OpKind::CumSum, t);
  for_row_shapes(t, [&](const Shape& s, Lies how, Fill fill) {
    if (!has(kFloats, t)) fill = Fill::Wide;
    all.push_back(tensor_case(OpKind::CumSum, t, format("{} {}", to_string(s), name_of(how)),
                              {numbers(s, n, fill, how)}));
  });
  return all;
}

}  // namespace

constinit const OpDef Reduce = {.inputs = {{"x", Role::Whole}},
                                .integers = {"reduction", "dims"},
                                .shape = shape_of_reduce,
                                .cost = [](Cost& c, std::span<const Shape> in, const Shape&, int64_t) {
                                  c.operations = double(in[0].count());
                                }};
constinit const OpDef CumSum = {.inputs = {{"x", Role::Whole}}, .operations = 2, .shape = shape_of_cumsum};
constinit const OpCheck ReduceCheck = {.reference =
                                           [](const reference::Call& c) {
                                             const size_t n = c.in[0]->values.size() / c.out.values.size();
                                             c.whole().empty() ? reduce_floats(c, n) : reduce_integers(c, n);
                                           },
                                       .tolerance = one_rounding,
                                       .cases = reduce_cases};
constinit const OpCheck CumSumCheck = {
    .reference = sums_so_far, .tolerance = one_rounding, .cases = cumsum_cases};
}  // namespace gimbal::ops
