// Sorting rows. NaNs are equal and above +infinity, -0 and 0 are equal; all sorts are stable. sort(x f32[n,
// R]) -> each row in order. argsort(x f32[n, R]) -> i32[n, R]: the indices of the values in order. top_k(x
// f32[n, R]) -> f32[2k, R]: the first k in falling order, then their indices; a row shorter than k is padded
// with -infinity and -1.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

#include "ops/defs/parts.h"

namespace gimbal::ops {
namespace {

// Whether a precedes b in rising order.
bool below(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

// The indices of n values in order; stable.
std::vector<size_t> places_in_order(const double* x, size_t n, SortOrder order) {
  std::vector<size_t> places(n);
  for (size_t i = 0; i < n; i++) places[i] = i;
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) {
    return order == SortOrder::Falling ? below(x[b], x[a]) : below(x[a], x[b]);
  });
  return places;
}

template <bool Places>
void in_order(const reference::Call& c) {
  for (size_t at = 0, n = size_t(c.out.shape.dim[0]); at < c.computed; at += n) {
    const auto places = places_in_order(&c.x()[at], n, SortOrder(c.params.i[0]));
    for (size_t i = 0; i < n; i++) c.put(at + i, Places ? double(places[i]) : c.x()[at + places[i]], 0);
  }
}

void first_k(const reference::Call& c) {
  const auto n = size_t(c.in[0]->shape.dim[0]), k = size_t(c.params.i[0]);
  for (size_t row = 0; row < c.computed / (2 * k); row++) {
    const double* x = &c.x()[row * n];
    const auto places = places_in_order(x, n, SortOrder::Falling);
    for (size_t i = 0; i < k; i++) {
      c.put(row * 2 * k + i, i < n ? x[places[i]] : -INFINITY, 0);
      c.put(row * 2 * k + k + i, i < n ? double(places[i]) : -1, 0);
    }
  }
}

Result<Shape> sorted_shape(const ShapeCall& c) {
  if (!is_f32_rows(c.in[0])) return c.refuse("x must be f32 rows");
  if (SortOrder(c.params.i[0]) != SortOrder::Rising && SortOrder(c.params.i[0]) != SortOrder::Falling)
    return c.refuse("the order is 0 (rising) or 1 (falling)");
  return Shape(c.kind == OpKind::Sort ? DType::F32 : DType::I32, {c.in[0].dim[0], c.in[0].dim[1]});
}

void sorting_cost(Cost& c, std::span<const Shape> in, const Shape&, int64_t) {  // comparisons:
  double halvings = 1;  // one for each value and halving of a row
  for (int64_t n = in[0].dim[0]; n > 2; n = (n + 1) / 2) halvings++;
  c.operations = double(in[0].count()) * halvings;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kOdd[] = {0.f,    -0.f,   kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                          1e-42f, -1e-42f};

// f32[width, capacity]: normal numbers; few different ones ("equal"); or with every third one a special value
// such as NaN or infinity ("odd").
CaseInput values(const Case& c, int width, const std::string& what, Numbers& n) {
  CaseInput in = rows_of(c, width, n);
  for (int64_t i = 0; i < in.shape.count() && what != "normal"; i++) {
    float v = float(n.below(5) - 2);
    if (what == "odd" && i % 3 == 0) v = kOdd[n.below(int(std::size(kOdd)))];
    std::memcpy(in.dense.data() + 4 * i, &v, 4);
  }
  return in;
}

// Rows of widths around those that kernels sort at once, and of a large vocabulary.
struct SortSize {
  int width, rows, k;  // k: of top_k
};
constexpr SortSize kSorts[] = {{1, 1, 1},     {2, 3, 1},     {5, 2, 7},      {63, 1, 40},   {64, 2, 64},
                               {65, 1, 1},    {130, 3, 200}, {511, 1, 40},   {512, 2, 1},   {513, 1, 513},
                               {1000, 3, 40}, {4097, 1, 64}, {5000, 1, 300}, {33000, 1, 1}, {262144, 1, 40}};

template <OpKind Kind>
std::vector<Case> sort_cases(DType x) {
  std::vector<Case> all;
  if (x != DType::F32) return all;
  constexpr bool kTopK = Kind == OpKind::TopK;
  Numbers n{uint64_t(Kind) * 131 + 5};
  for (const SortSize& s : kSorts) {
    // Wide rows only once: checking them lane by lane takes seconds.
    const bool wide = s.width > 4000;
    if (!kTopK && s.width > (Kind == OpKind::Sort ? 10000 : 40000)) continue;
    for (const std::string what : {"normal", "equal", "odd"}) {
      if (wide && what != (s.width == 5000 ? "odd" : "normal")) continue;
      for (int order = 0; order < (kTopK ? 1 : 2); order++) {
        if (wide && !kTopK && order != (Kind == OpKind::ArgSort)) continue;
        const std::string which = kTopK ? format("k={}", s.k) : order ? "falling" : "rising";
        Case c{case_name(Kind, x, format("width={} rows={} {} {}", s.width, s.rows, what, which)),
               Kind,
               {},
               {},
               s.rows,
               s.rows + 1};
        c.params.i[0] = kTopK ? s.k : order;
        c.inputs = {values(c, s.width, what, n)};
        all.push_back(std::move(c));
      }
    }
  }
  return all;
}

template <SortOrder Order>
Bench bench(DType, int rows, int) {
  OpParams p;
  p.i[0] = int32_t(Order);
  return bench_of_rows(1, rows, p);
}

}  // namespace

constinit const OpDef Sort = {
    .inputs = {{"x", Role::Rows}}, .integers = {"order"}, .shape = sorted_shape, .cost = sorting_cost};
constinit const OpDef ArgSort = {
    .inputs = {{"x", Role::Rows}}, .integers = {"order"}, .shape = sorted_shape, .cost = sorting_cost};
constinit const OpDef TopK = {
    .inputs = {{"x", Role::Rows}},
    .integers = {"k"},
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const auto k = c.params.i[0];
      if (!is_f32_rows(c.in[0])) return c.refuse("x must be f32 rows");
      if (c.in[0].dim[0] > kMaxTopKWidth || k < 1 || k > kMaxTopKWidth)
        return c.refuse("a row has at most 2^24 values, and k is from 1 to 2^24");
      return Shape(DType::F32, {2 * k, c.in[0].dim[1]});
    },
    .cost = [](Cost& c, std::span<const Shape> in, const Shape&,
               int64_t) { c.operations = double(in[0].count()); },
};

constinit const OpCheck SortCheck = {.reference = in_order<false>,
                                     .tolerance = roundings<0>,
                                     .cases = sort_cases<OpKind::Sort>,
                                     .bench = bench<SortOrder::Rising>};
constinit const OpCheck ArgSortCheck = {.reference = in_order<true>,
                                        .tolerance = roundings<0>,
                                        .cases = sort_cases<OpKind::ArgSort>,
                                        .bench = bench<SortOrder::Falling>};
constinit const OpCheck TopKCheck = {
    .reference = first_k,
    .tolerance = roundings<0>,
    .cases = sort_cases<OpKind::TopK>,
    .bench =
        [](DType, int rows, int) {  // as samplers do: of a large vocabulary
          constexpr int kVocabulary = 128256, k = 40;
          OpParams p;
          p.i[0] = k;
          Bench b = bench_of_rows(1, rows, p, kVocabulary);
          b.text = format("{} of {}", k, kVocabulary);
          return b;
        },
};

}  // namespace gimbal::ops
