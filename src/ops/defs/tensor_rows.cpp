// Ops of the tensor library on the rows of a value: softmax, normalize, order, resample. The order of
// additions: docs/internals/numerics.md. Softmax of a row of -infinity alone gives zeros. Ids of order are
// stable; -0 equals +0 there, and NaNs are equal and above +infinity.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "ops/defs/tensor_row.h"

namespace gimbal::ops {
namespace {

Result<Shape> shape_of_floats(const ShapeCall& c) {
  if (!has(kFloats, c.in[0].type)) return c.refuse("x must be of floats");
  if (c.in[0].rank < 1) return c.refuse("x must have a dimension");
  return c.in[0];
}
Result<Shape> shape_of_normalize(const ShapeCall& c) {
  auto to = shape_of_floats(c);
  for (size_t i = 1; to && i < c.in.size(); i++)
    if (c.in[i].type != to->type || c.in[i].rank != 1 || c.in[i].dim[0] != to->dim[0])
      return c.refuse("weight and bias must be of x's dtype, one value for each of a row");
  return to;
}
Result<Shape> shape_of_order(const ShapeCall& c) {
  if (!has(kNumbers & ~kStored, c.in[0].type)) return c.refuse("x must be of numbers that have an order");
  if (c.in[0].dim[0] > INT32_MAX) return c.refuse("a row has at most 2^31 - 1 values");
  Shape to = c.in[0];
  if (c.params.i[1] == 0) to.type = DType::I32;
  return to;
}
Result<Shape> shape_of_resample(const ShapeCall& c) {
  const Shape &x = c.in[0], &ids = c.in[1], &weights = c.in[2];
  if (x.rank < 1 || ids.type != DType::I32 || weights.type != computed_in(x.type) || ids.rank != 2 ||
      !same_dims(ids, weights))
    return c.refuse("ids must be i32, weights in the format of the arithmetic, both [taps, m]");
  Shape to = x;
  to.dim[0] = ids.dim[1];
  return to;
}

// ---- references
void softmax_rows(const reference::Call& c) {
  const size_t n = row_length(c);
  // Units in the last place of exp and log in f32 (ops/maps.def), and in f64.
  const double ulps = rounds_apart(c) ? 4 : 1;
  for (size_t first = 0; first < c.computed; first += n) {
    const Row row{&c.x()[first], n, rounds_apart(c)};
    const Rounded most = row.at(row.extreme(true));
    const auto power = [&](size_t i) { return exponential(row.at(i) - most, ulps); };
    const Rounded sum = sum_of(n, power), of_sum = logarithm(sum, ulps);
    for (size_t i = 0; i < n; i++) {
      if (most.v == -INFINITY) c.put_exact(first + i, c.params.i[0] ? -INFINITY : 0);
      else put(c, first + i, c.params.i[0] ? (row.at(i) - most) - of_sum : power(i) / sum);
    }
  }
}

void normalize_rows(const reference::Call& c) {
  const size_t n = row_length(c);
  for (size_t first = 0; first < c.computed; first += n) {
    const Row row{&c.x()[first], n, rounds_apart(c)};
    const Rounded middle = c.params.i[0] ? row.mean() : Rounded();
    const Rounded square = row.squares(middle) / Rounded{double(n)};
    // Epsilon is rounded to f32.
    const Rounded epsilon{c.params.f[0], c.params.f[0]};
    const Rounded scale = Rounded{1, 0} / root(square + epsilon);
    for (size_t i = 0; i < n; i++) {
      Rounded y = (row.at(i) - middle) * scale;
      if (c.in.size() > 1) y = y * Rounded{c.x(1)[i], 0};
      if (c.in.size() > 2) y = y + Rounded{c.x(2)[i], 0};
      put(c, first + i, y);
    }
  }
}

// NaNs are equal and above infinity.
void order_rows(const reference::Call& c) {
  const size_t n = row_length(c);
  for (size_t first = 0; first < c.computed; first += n) {
    const auto before = [&](size_t a, size_t b) {
      if (!c.whole().empty()) return c.whole()[first + a] < c.whole()[first + b];
      const double x = c.x()[first + a], y = c.x()[first + b];
      return !std::isnan(x) && (std::isnan(y) || x < y);
    };
    std::vector<size_t> places(n);
    std::iota(places.begin(), places.end(), size_t(0));
    std::stable_sort(places.begin(), places.end(),
                     [&](size_t a, size_t b) { return c.params.i[0] ? before(b, a) : before(a, b); });
    for (size_t i = 0; i < n; i++)
      if (c.params.i[1]) c.move(first + i, 0, first + places[i]);
      else c.put_whole(first + i, int64_t(places[i]));
  }
}

// Each output: its taps in order; one alone is a copy.
void resample_rows(const reference::Call& c) {
  const auto n = row_length(c), taps = size_t(c.in[1]->shape.dim[0]), m = size_t(c.out.shape.dim[0]);
  for (size_t i = 0; i < c.computed; i++) {
    Rounded sum;
    for (size_t k = 0; k < taps; k++) {
      const size_t tap = i % m * taps + k;
      const Rounded x{c.x()[i / m * n + size_t(c.whole(1)[tap])], 0}, weight{c.x(2)[tap], 0};
      sum = taps == 1 ? x : k == 0 ? weight * x : fused(weight, x, sum, rounds_apart(c));
    }
    taps == 1 ? c.put_exact(i, rounded(c.out.shape.type, sum.v)) : put(c, i, sum);
  }
}

// ---- cases
std::vector<Case> softmax_cases(DType t) {
  std::vector<Case> all;
  if (!has(kFloats, t)) return all;
  Numbers n = numbers_for(OpKind::Softmax, t);
  for_row_shapes(t, [&](const Shape& s, Lies how, Fill fill) {
    for (int logarithm : {0, 1}) {
      if (logarithm && s.dim[0] == 1024) continue;
      OpParams p;
      p.i[0] = logarithm;
      const char* what = fill == Fill::Few ? "odd" : "normal";
      all.push_back(
          tensor_case(OpKind::Softmax, t,
                      format("{} {}{} {}", to_string(s), what, logarithm ? " logarithm" : "", name_of(how)),
                      {numbers(s, n, fill, how)}, p));
    }
  });
  // A row of -infinity alone, beside one with a number.
  std::vector<double> v(10, -INFINITY);
  v[7] = 2;
  for (int logarithm : {0, 1}) {
    OpParams p;
    p.i[0] = logarithm;
    all.push_back(tensor_case(OpKind::Softmax, t, "of -infinity", {numbers_of(Shape(t, {5, 2}), v)}, p));
  }
  return all;
}

std::vector<Case> normalize_cases(DType t) {
  std::vector<Case> all;
  if (!has(kFloats, t)) return all;
  Numbers n = numbers_for(OpKind::Normalize, t);
  size_t next = size_t(t);
  for_row_shapes(t, [&](const Shape& s, Lies how, Fill fill) {
    if (fill == Fill::Few) return;  // infinities have no mean
    for (int mean : {0, 1}) {
      OpParams p;
      p.f[0] = 1e-5, p.i[0] = mean;
      std::vector<CaseInput> in = {numbers(s, n, fill, how)};
      const size_t more = next++ % 3;
      for (size_t i = 0; i < more; i++)
        in.push_back(numbers(Shape(t, {s.dim[0]}), n, fill, nth(kViews, next + i)));
      all.push_back(tensor_case(OpKind::Normalize, t,
                                format("{} {} mean={} inputs={}", to_string(s), name_of(how), mean, more + 1),
                                std::move(in), p));
    }
  });
  return all;
}

std::vector<Case> order_cases(DType t) {
  std::vector<Case> all;
  if (!has(kNumbers & ~kStored, t)) return all;
  Numbers n = numbers_for(OpKind::Order, t);
  size_t next = size_t(t);
  for (const auto& [width, rows] : std::initializer_list<std::pair<int64_t, int64_t>>{{1, 3},
                                                                                      {2, 2},
                                                                                      {23, 2},
                                                                                      {25, 3},
                                                                                      {64, 2},
                                                                                      {65, 2},
                                                                                      {129, 3},
                                                                                      {300, 1},
                                                                                      {2047, 1},
                                                                                      {2049, 2},
                                                                                      {4097, 1}})
    for (Fill fill : {Fill::Few, Fill::Wide}) {
      const size_t i = next++;
      if (width > 2000 && (fill == Fill::Few) == (width == 2049)) continue;
      OpParams p;
      p.i[0] = i % 2, p.i[1] = i / 2 % 2;
      const Lies how = nth(kViews, i);
      all.push_back(tensor_case(OpKind::Order, t,
                                format("{} x {} {} {} {}", width, rows, fill == Fill::Few ? "equal" : "wide",
                                       p.i[0] ? "falling" : "rising", name_of(how)),
                                {numbers(Shape(t, {width, rows}), n, fill, how)}, p));
    }
  return all;
}

std::vector<Case> resample_cases(DType t) {
  std::vector<Case> all;
  if (!has(kFloats, t)) return all;
  Numbers n = numbers_for(OpKind::Resample, t);
  size_t next = size_t(t);
  for (const auto& [width, to, taps] : std::initializer_list<std::tuple<int64_t, int64_t, int64_t>>{
           {1, 1, 1}, {7, 5, 1}, {7, 19, 2}, {33, 16, 4}, {20, 1027, 2}}) {
    const Lies how = nth(kViews, next++), other = nth(kViews, next);
    for (Lies view : {how, other})
      all.push_back(tensor_case(OpKind::Resample, t,
                                format("{} to {} taps={} {}", width, to, taps, name_of(view)),
                                {numbers(Shape(t, {width, 3, 2}), n, Fill::Normal, view),
                                 ids(Shape(DType::I32, {taps, to}), n, int(width)),
                                 numbers(Shape(computed_in(t), {taps, to}), n, Fill::Normal)}));
  }
  return all;
}

}  // namespace

constinit const OpDef Softmax = {
    .inputs = {{"x", Role::Whole}}, .integers = {"logarithm"}, .operations = 20, .shape = shape_of_floats};
constinit const OpDef Normalize = {
    .inputs = {{"x", Role::Whole}, {"weight", Role::Whole}, {"bias", Role::Whole}},
    .floats = {"epsilon"},
    .integers = {"less_mean"},
    .operations = 8,
    .shape = shape_of_normalize};
constinit const OpDef Order = {.inputs = {{"x", Role::Whole}},
                               .integers = {"order", "values"},
                               .shape = shape_of_order,
                               .cost = [](Cost& c, std::span<const Shape> in, const Shape&, int64_t) {
                                 c.operations = 20 * double(in[0].count());
                               }};
constinit const OpDef Resample = {
    .inputs = {{"x", Role::Whole}, {"ids", Role::Whole}, {"weights", Role::Whole}},
    .operations = 4,
    .shape = shape_of_resample};

// The exponentials of f64 are not the C library's.
constinit const OpCheck SoftmaxCheck = {
    .reference = softmax_rows,
    .tolerance =
        [](std::span<const Shape> in) { return in[0].type == DType::F64 ? 0x1p-52 : one_rounding(in); },
    .cases = softmax_cases};
constinit const OpCheck NormalizeCheck = {
    .reference = normalize_rows, .tolerance = one_rounding, .cases = normalize_cases};
constinit const OpCheck OrderCheck = {
    .reference = order_rows, .tolerance = roundings<0>, .cases = order_cases};
constinit const OpCheck ResampleCheck = {
    .reference = resample_rows, .tolerance = one_rounding, .cases = resample_cases};

}  // namespace gimbal::ops
