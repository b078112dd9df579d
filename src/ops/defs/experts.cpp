// Mixture of experts.
// route(logits[E, R], bias[E]) -> f32[2k, R]: the weights of the k best experts of each row, then their
// indices. expert_mat_mul(w[k, n * E], x[k, slots or 1, R], routes, bias[n * E]) -> f32[n, slots, R]: x times
// the matrix of the slot's expert, n rows of w each. An index with a fraction is rounded down. Without
// routes, slot s uses matrix s (a matrix per head). combine(x[d, slots, R], routes, scales[E]) -> f32[d, R]:
// the sum of the slots, each times its weight and the scale of its expert.
#include <algorithm>
#include <bit>
#include <iterator>

#include "ops/defs/parts.h"

namespace gimbal::ops {
namespace {

// ---- route

// The indices of the k best of n scores; the lower index first on ties.
std::vector<size_t> best_of(const std::vector<double>& score, size_t k) {
  std::vector<size_t> order(score.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return score[a] > score[b]; });
  order.resize(k);
  return order;
}

void choose_experts(const reference::Call& c) {
  const auto experts = size_t(c.in[0]->shape.dim[0]), k = size_t(c.params.i[0]);
  const auto groups = size_t(std::max<int64_t>(1, c.params.i[3])), size = experts / groups;
  for (size_t row = 0; row < size_t(c.rows); row++) {
    const double* logits = &c.x()[row * experts];
    const double highest = *std::max_element(logits, logits + experts);
    std::vector<double> weight(experts), choice(experts);
    double total = 0;
    for (size_t e = 0; e < experts; e++) {
      weight[e] = Gating(c.params.i[1]) == Gating::Softmax ? std::exp(logits[e] - highest)
                                                           : 1 / (1 + std::exp(-logits[e]));
      total += weight[e];
    }
    for (size_t e = 0; e < experts; e++) {
      if (Gating(c.params.i[1]) == Gating::Softmax) weight[e] /= total;
      choice[e] = c.in.size() > 1 || groups > 1 ? weight[e] : logits[e];
      if (c.in.size() > 1) choice[e] += c.x(1)[e];
    }
    if (groups > 1) {
      std::vector<double> score;
      for (size_t g = 0; g < groups; g++) {
        std::vector<double> own(&choice[g * size], &choice[g * size] + size);
        std::sort(own.rbegin(), own.rend());
        score.push_back(size > 1 ? own[0] + own[1] : own[0]);
      }
      std::vector<bool> kept(groups);
      for (size_t g : best_of(score, size_t(c.params.i[4]))) kept[g] = true;
      for (size_t e = 0; e < experts; e++)
        if (!kept[e / size]) choice[e] = -INFINITY;
    }
    const auto chosen = best_of(choice, k);
    double sum = 0;
    for (size_t e : chosen) sum += weight[e];
    for (size_t j = 0; j < k; j++) {
      const double scale = c.params.f[0] != 0 ? c.params.f[0] : 1;
      const double w = weight[chosen[j]] / (c.params.i[2] ? sum : 1) * scale;
      // The error grows with the distance to the highest logit: exp() gets a rounded argument.
      c.put(row * 2 * k + j, w, w * (1 + std::fabs(logits[chosen[j]] - highest) / 16));
      c.put(row * 2 * k + k + j, double(chosen[j]), 0);
    }
  }
}

struct Routing {
  int experts, k;
  Gating gating;
  bool normalised, bias;
  int groups, used;
  double scale;
  bool ties;
};
constexpr Routing kRoutings[] = {{4, 2, Gating::Softmax, false, false, 0, 0, 0, false},
                                 {8, 3, Gating::Softmax, true, false, 0, 0, 0, true},
                                 {1, 1, Gating::Sigmoid, false, false, 0, 0, 0, false},
                                 {60, 4, Gating::Softmax, false, true, 0, 0, 1.5, false},
                                 {128, 8, Gating::Softmax, true, false, 0, 0, 0, true},
                                 {16, 1, Gating::Sigmoid, false, false, 0, 0, 0, true},
                                 {64, 6, Gating::Sigmoid, true, true, 8, 3, 2.5, false},
                                 {160, 6, Gating::Softmax, false, false, 8, 3, 16, false},
                                 {8, 8, Gating::Sigmoid, true, true, 0, 0, 0, false},
                                 {12, 3, Gating::Sigmoid, true, false, 4, 2, 0, false},
                                 {512, 10, Gating::Softmax, true, false, 0, 0, 0, true},
                                 {1000, 33, Gating::Sigmoid, true, true, 0, 0, 0.5, false}};

std::vector<Case> route_cases(DType x) {
  std::vector<Case> all;
  if (x != DType::F32) return all;
  Numbers n(29);
  for (const Routing& r : kRoutings)
    for (int rows : {1, 5}) {
      Case c{case_name(OpKind::Route, x,
                       format("experts={} k={} gating={} normalised={} bias={} groups={}/{} scale={} rows={}",
                              r.experts, r.k, int(r.gating), int(r.normalised), int(r.bias), r.used, r.groups,
                              r.scale, rows)),
             OpKind::Route,
             {},
             {},
             rows,
             rows + 1};
      c.params.f[0] = r.scale;
      c.params.i[0] = r.k, c.params.i[1] = int(r.gating), c.params.i[2] = r.normalised;
      c.params.i[3] = r.groups, c.params.i[4] = r.used;
      c.inputs = {floats(Shape(x, {r.experts, c.capacity}), n, 2)};
      if (r.ties) {  // few different numbers
        auto* v = reinterpret_cast<float*>(c.inputs[0].dense.data());
        for (int64_t i = 0; i < c.inputs[0].shape.count(); i++) v[i] = std::round(v[i]);
      }
      if (r.bias) c.inputs.push_back(floats(Shape(x, {r.experts}), n, 0.3f));
      all.push_back(std::move(c));
    }
  return all;
}

// ---- expert_mat_mul

size_t slots_of(std::span<const Shape> in) { return size_t(in.size() > 2 ? in[2].dim[0] / 2 : in[1].dim[1]); }

void multiply(const reference::Call& c) {
  const auto k = size_t(c.in[0]->shape.dim[0]), n = size_t(c.out.shape.dim[0]),
             slots = size_t(c.out.shape.dim[1]), x_slots = size_t(c.in[1]->shape.dim[1]);
  for (size_t i = 0; i < c.computed; i++) {
    const size_t slot = i / n % slots, row = i / n / slots;
    const size_t expert = c.in.size() > 2 ? size_t(c.x(2)[row * 2 * slots + slots + slot]) : slot;
    const double *w = &c.x(0)[(expert * n + i % n) * k], *x = &c.x(1)[(row * x_slots + slot % x_slots) * k];
    auto [s, terms] = dot(w, x, k);
    if (c.in.size() > 3) s += c.x(3)[expert * n + i % n], terms += std::fabs(c.x(3)[expert * n + i % n]);
    c.put(i, s, terms);
  }
}

struct ExpertSize {
  int blocks, n, experts, slots, x_slots, rows;
  bool routes, bias;
};
constexpr ExpertSize kExperts[] = {{1, 16, 4, 2, 1, 1, true, false},  {2, 24, 3, 2, 2, 1, true, true},
                                   {3, 5, 7, 3, 1, 4, true, true},    {1, 40, 4, 4, 4, 3, false, false},
                                   {2, 160, 8, 2, 1, 9, true, false}, {1, 17, 2, 2, 2, 70, true, false},
                                   {1, 16, 3, 3, 3, 1, false, false}, {1, 48, 2, 2, 1, 130, true, true}};

std::vector<Case> expert_cases(DType w) {
  std::vector<Case> all;
  if (!can_decode(w)) return all;
  const DType x = activation_type(w);
  const int block = std::max(info(w).block, info(x).block);
  Numbers n(uint64_t(w) + 30);
  for (const ExpertSize& s : kExperts) {
    const int columns = block > 1 ? block * s.blocks : 29 * s.blocks;
    if (int64_t(columns) * s.n * s.experts > 1 << 18) continue;
    Case c{case_name(OpKind::ExpertMatMul, w,
                     format("k={} n={} experts={} slots={} rows={}{}{}", columns, s.n, s.experts, s.slots,
                            s.rows, s.x_slots == s.slots ? " own x" : "", s.bias ? " bias" : "")),
           OpKind::ExpertMatMul,
           {},
           {},
           s.rows,
           s.rows + 2};
    c.params.i[0] = s.n;
    const Shape rows(x, {columns, s.x_slots, c.capacity});
    c.inputs.push_back(weights(Shape(w, {columns, s.n * s.experts}), n));
    c.inputs.push_back(x == DType::F32 ? floats(rows, n) : activations(rows, n));
    if (s.routes) {
      c.inputs.push_back(floats(Shape(DType::F32, {2 * s.slots, c.capacity}), n));
      auto* route = reinterpret_cast<float*>(c.inputs.back().dense.data());
      for (int r = 0; r < c.capacity; r++)
        for (int i = 0; i < s.slots; i++)
          route[(2 * r + 1) * s.slots + i] = float(n.below(s.experts)) + (s.bias && r % 2 ? 0.75f : 0.f);
    }
    if (s.bias) c.inputs.push_back(floats(Shape(DType::F32, {s.n * s.experts}), n));
    all.push_back(std::move(c));
  }
  return all;
}

// ---- combine

void add_up(const reference::Call& c) {
  const auto d = size_t(c.out.shape.dim[0]), slots = size_t(c.in[0]->shape.dim[1]);
  for (size_t i = 0; i < c.computed; i++) {
    double sum = 0, terms = 0;
    for (size_t s = 0; s < slots; s++) {
      const double* route = &c.x(1)[i / d * 2 * slots + s];
      const double scale = c.in.size() > 2 ? c.x(2)[size_t(route[slots])] : 1;
      const double t = route[0] * scale * c.x(0)[(i / d * slots + s) * d + i % d];
      sum += t, terms += std::fabs(t) + std::fabs(sum);
    }
    c.put(i, sum, terms);
  }
}

std::vector<Case> combine_cases(DType x) {
  std::vector<Case> all;
  for (bool scales : {false, true})
    for (Case& c : row_cases(OpKind::Combine, x, [=](Case&c, int width, Numbers&n) {
           if (x != DType::F32 || width > 1000) return false;
           const int slots = 1 + width % 5, experts = 9;
           c.name += format(" slots={}{}", slots, scales ? " scales" : "");
           c.inputs = {floats(Shape(x, {width, slots, c.capacity}), n),
                       floats(Shape(x, {2 * slots, c.capacity}), n)};
           auto* route = reinterpret_cast<float*>(c.inputs[1].dense.data());
           for (int r = 0; r < c.capacity; r++)
             for (int i = 0; i < slots; i++) route[(2 * r + 1) * slots + i] = float(n.below(experts));
           if (scales) c.inputs.push_back(floats(Shape(x, {experts}), n));
           return true;
         }))
      all.push_back(std::move(c));
  return all;
}

}  // namespace

constinit const OpDef Route = {
    .inputs = {{"logits", Role::Rows}, {"bias", Role::Weight}},
    .floats = {"scale"},
    .integers = {"k", "gating", "normalised", "groups", "groups used"},
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape& logits = c.in[0];
      if (!is_f32_rows(logits)) return c.refuse("logits must be f32 rows");
      const int64_t experts = logits.dim[0], k = c.params.i[0], groups = c.params.i[3], used = c.params.i[4];
      if (c.in.size() > 1 && c.in[1] != Shape(DType::F32, {experts}))
        return c.refuse("the bias must be f32, one per expert");
      if (c.params.i[1] < 0 || c.params.i[1] > int64_t(Gating::Sigmoid)) return c.refuse("unknown gating");
      if (experts > kMaxExperts || k < 1 || k > std::min<int64_t>(experts, kMaxChosen))
        return c.refuse("there are at most 1024 experts, and 1 to 64 of them are chosen");
      if (groups < 0 || groups > kMaxExpertGroups || (groups == 0 && used != 0) ||
          (groups > 0 && (experts % groups || used < 1 || used > groups || k > used * (experts / groups))))
        return c.refuse("groups must be equally large, and those that are used must have k experts");
      return Shape(DType::F32, {2 * k, logits.dim[1]});
    },
    .cost = [](Cost& c, std::span<const Shape> in, const Shape&,
               int64_t) { c.operations = 30 * double(in[0].count()); },
};
constinit const OpCheck RouteCheck = {
    .reference = choose_experts,
    .tolerance = [](std::span<const Shape> in) { return (double(in[0].dim[0]) / 16 + 48) * kRounding; },
    .cases = route_cases,
    .bench =
        [](DType, int rows, int) {
          OpParams p;
          p.i[0] = 8, p.i[2] = 1;
          Bench b = bench_of_rows(1, rows, p, 128);
          b.text = "8 of 128";
          return b;
        },
};

constinit const OpDef ExpertMatMul = {
    .inputs = {{"weight", Role::Weight}, {"x", Role::Rows}, {"routes", Role::Rows}, {"bias", Role::Weight}},
    .integers = {"n"},
    .product = true,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &w = c.in[0], &x = c.in[1];
      const int64_t n = c.params.i[0];
      if (w.rank != 2 || x.rank != 3) return c.refuse("the weight must be a matrix, and x [k, slots, rows]");
      if (w.dim[0] != x.dim[0]) return c.refuse("the rows of the weight and of x must be equally long");
      if (x.type != activation_type(w.type))
        return c.refuse("x is not in the format that matches the weight's");
      if (n < 1 || w.dim[1] % n) return c.refuse("the weight must be matrices of n rows each");
      if (c.in.size() > 2 && (!is_f32_rows(c.in[2]) || c.in[2].dim[0] % 2 || c.in[2].dim[1] != x.dim[2]))
        return c.refuse("routes must be f32[2 slots, rows]");
      const auto slots = int64_t(slots_of(c.in));
      if (c.in.size() > 2 ? x.dim[1] != slots && x.dim[1] != 1 : w.dim[1] != n * slots)
        return c.refuse(
            "x must have as many slots as the routes, or one; without routes, as there are matrices");
      if (c.in.size() > 3 && c.in[3] != Shape(DType::F32, {w.dim[1]}))
        return c.refuse("the bias must be f32 with one value per row of the weight");
      return Shape(DType::F32, {n, slots, x.dim[2]});
    },
    // A row reads only its experts' matrices; several rows at most all of them.
    .cost =
        [](Cost& c, std::span<const Shape> in, const Shape& out, int64_t) {
          const double read = std::min(double(in[0].rows()), double(out.rows() * out.dim[0]));
          c.bytes_read = double(row_bytes(in[0].type, in[0].dim[0])) * read + double(in[1].bytes());
          c.operations = 2.0 * double(in[0].dim[0]) * double(out.count());
        },
};
constinit const OpCheck ExpertMatMulCheck = {
    .reference = multiply,
    .tolerance = [](std::span<const Shape> in) { return MatMulCheck.tolerance(in); },
    .cases = expert_cases,
    .bench =
        [](DType w, int rows, int) {
          constexpr int kEach = 256, kNumber = kBenchOutputs / kEach, kSlots = 8;
          Bench b{format("{} of {} x {} x {}", kSlots, kNumber, kBenchColumns, kEach),
                  {{Shape(w, {kBenchColumns, kBenchOutputs}), {}},
                   {Shape(activation_type(w), {kBenchColumns, 1, rows}), {}}},
                  {},
                  true};
          BenchInput routes{Shape(DType::F32, {2 * kSlots, rows}), {}};  // as the bits of the floats
          for (int r = 0; r < rows; r++)
            for (int i = 0; i < 2 * kSlots; i++)
              routes.whole.push_back(std::bit_cast<int32_t>(float((r * 5 + i * 3) % kNumber)));
          b.inputs.push_back(routes);
          b.params.i[0] = kEach;
          return b;
        },
};

constinit const OpDef Combine = {
    .inputs = {{"x", Role::Rows}, {"routes", Role::Rows}, {"scales", Role::Weight}},
    .operations = 4,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape& x = c.in[0];
      if (!is_f32(x) || x.rank != 3) return c.refuse("x must be f32[d, slots, rows]");
      if (c.in[1] != Shape(DType::F32, {2 * x.dim[1], x.dim[2]}))
        return c.refuse("routes must be f32[2 slots, rows]");
      if (c.in.size() > 2 && (!is_f32(c.in[2]) || c.in[2].rank != 1)) return c.refuse("scales must be f32");
      return Shape(DType::F32, {x.dim[0], x.dim[2]});
    },
};
constinit const OpCheck CombineCheck = {
    .reference = add_up,
    .tolerance = roundings<2>,
    .cases = combine_cases,
    .bench =
        [](DType, int rows, int) {
          return Bench{
              format("8 x {}", kBenchWidth),
              {{Shape(DType::F32, {kBenchWidth, 8, rows}), {}}, {Shape(DType::F32, {16, rows}), {}}}};
        },
};

}  // namespace gimbal::ops
