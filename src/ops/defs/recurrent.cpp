// Ops with a recurrent state, updated by every row of a sequence in order.
// short_conv(x[c, R], taps f32[K * c], state, sequence, pages, bias f32[c]) -> as x: each channel's last K
// values times its taps, the last tap for the row's own. The state is the last K - 1 rows, the oldest first.
// selective_scan(x[hd, h, R], step[h, R], a, b[N, g, R], c[N, g, R], state, ...) -> as x: for each channel
// and place n of its state: s = exp(step * a) * s + step * x * b[n]; y = sum of s * c[n]. a: one number per
// head, or N. delta_rule(q[s, hk, R], k, v[d, h, R], rate[h, R], decay[h, R], state, ...) -> as v: S[s, d] of
// each head: S = exp(decay) * S; e = rate * (v - S^T k); S = S + k e^T; y = S^T q.
// The states of scan and rule lie in pieces of 16 channels (of a head's values): [N][16] (keys for N), one
// after the other; the last one has the channels that are left.
#include "ops/defs/recurrent.h"

namespace gimbal::ops {
namespace {

void convolve(const reference::Call& c) {
  const auto n = size_t(c.in[0]->shape.dim[0]), taps = c.x(1).size() / n;
  for (int row = 0; row < c.rows; row++) {
    const size_t begin = state_begin(c, 2, row);
    for (size_t i = 0; i < n; i++) {
      const double now = c.x()[size_t(row) * n + i];
      double sum = 0, terms = 0;
      for (size_t j = 0; j < taps; j++) {
        const double t = c.x(1)[i * taps + j] * (j + 1 < taps ? c.state->values[begin + j * n + i] : now);
        sum += t, terms += std::fabs(sum);
        if (j > 0)
          c.put_state(begin + (j - 1) * n + i, j + 1 < taps ? c.state->values[begin + j * n + i] : now, 0);
      }
      if (c.in.size() > 5) sum += c.x(5)[i], terms += std::fabs(sum);
      c.put(size_t(row) * n + i, sum, terms);
    }
  }
}

void scan(const reference::Call& c) {
  const Shape& x = c.in[0]->shape;
  const auto hd = size_t(x.dim[0]), heads = size_t(x.dim[1]), channels = hd * heads,
             n = size_t(c.in[3]->shape.dim[0]), groups = size_t(c.in[3]->shape.dim[1]);
  const bool by_place = c.x(2).size() != heads;
  for (int row = 0; row < c.rows; row++)
    for (size_t i = 0; i < channels; i++) {
      const size_t head = i / hd, r = size_t(row), group = (r * groups + head / (heads / groups)) * n;
      const double step = c.x(1)[r * heads + head], dx = step * c.x(0)[r * channels + i];
      double sum = 0, terms = 0;
      for (size_t j = 0; j < n; j++) {
        const Place s{c, state_begin(c, 5, row) + in_piece(i, channels, n, j)};
        const double exponent = step * c.x(2)[by_place ? head * n + j : head],
                     faded = s.value() * std::exp(exponent), added = dx * c.x(3)[group + j],
                     now = faded + added;
        const double error = s.error() * std::exp(exponent) + std::fabs(faded) * (5 + std::fabs(exponent)) +
                             2 * std::fabs(added) + std::fabs(now);
        c.put_state(s.at, now, error);
        sum += now * c.x(4)[group + j];
        terms += error * std::fabs(c.x(4)[group + j]) + std::fabs(sum);
      }
      c.put(size_t(row) * channels + i, sum, terms);
    }
}

void correct(const reference::Call& c) {
  const auto s = size_t(c.in[0]->shape.dim[0]), few = size_t(c.in[0]->shape.dim[1]),
             d = size_t(c.in[2]->shape.dim[0]), heads = size_t(c.in[2]->shape.dim[1]);
  for (int row = 0; row < c.rows; row++)
    for (size_t h = 0; h < heads; h++) {
      const size_t key = HeadMap(c.params.i[0]) == HeadMap::Modulo ? h % few : h / (heads / few),
                   r = size_t(row);
      const double *q = &c.x(0)[(r * few + key) * s], *k = &c.x(1)[(r * few + key) * s];
      const double rate = c.x(3)[r * heads + h], decay = c.x(4)[r * heads + h];
      for (size_t v = 0; v < d; v++) {
        const size_t begin = state_begin(c, 5, row) + h * s * d;
        auto place = [&](size_t j) { return Place{c, begin + in_piece(v, d, s, j)}; };
        double found = 0, found_error = 0;
        for (size_t j = 0; j < s; j++) {
          const Place p = place(j);
          const double faded = p.value() * std::exp(decay),
                       error = p.error() * std::exp(decay) + std::fabs(faded) * (5 + std::fabs(decay));
          found += faded * k[j];
          found_error += error * std::fabs(k[j]) + std::fabs(found);
          c.put_state(p.at, faded, error);
        }
        const double missing = c.x(2)[(r * heads + h) * d + v] - found, change = rate * missing,
                     change_error = std::fabs(rate) * (found_error + std::fabs(missing)) + std::fabs(change);
        double sum = 0, terms = 0;
        for (size_t j = 0; j < s; j++) {
          const Place p = place(j);
          const double now = p.value() + k[j] * change,
                       error = p.error() + std::fabs(k[j]) * change_error + std::fabs(now);
          c.put_state(p.at, now, error);
          sum += now * q[j];
          terms += error * std::fabs(q[j]) + std::fabs(sum);
        }
        c.put((r * heads + h) * d + v, sum, terms);
      }
    }
}

std::vector<Case> conv_cases(DType x) {
  std::vector<Case> all;
  Numbers n(32);
  for (int channels : {5, 16, 96, 130})
    for (int rows : {1, kStateRows}) {
      if (x != DType::F32) continue;
      const int taps = channels == 5 ? 1 : channels == 130 ? 3 : 4;
      Case c = case_of(OpKind::ShortConv, format("channels={} taps={}", channels, taps), rows);
      c.inputs = {floats(Shape(x, {channels, c.capacity}), n), floats(Shape(x, {channels * taps}), n)};
      add_state(c, channels * std::max(1, taps - 1), rows > 1 ? 2 : 1, n);
      if (channels != 16) c.inputs.push_back(floats(Shape(x, {channels}), n));
      all.push_back(std::move(c));
    }
  return all;
}

struct ScanSize {
  int hd, heads, n, groups;
  bool by_place;
};
std::vector<Case> scan_cases(DType x) {
  std::vector<Case> all;
  Numbers n(33);
  for (const ScanSize& s : {ScanSize{1, 48, 16, 1, true},
                            {24, 4, 16, 2, false},
                            {64, 2, 128, 1, false},
                            {16, 5, 9, 1, false},
                            {20, 3, 5, 1, false},
                            {8, 6, 7, 3, false},
                            {1, 20, 5, 1, true}})
    for (int rows : {1, kStateRows}) {
      if (x != DType::F32) continue;
      Case c = case_of(OpKind::SelectiveScan,
                       format("hd={} heads={} n={} groups={}{}", s.hd, s.heads, s.n, s.groups,
                              s.by_place ? " by place" : ""),
                       rows);
      c.inputs = {floats(Shape(x, {s.hd, s.heads, c.capacity}), n),
                  between(Shape(x, {s.heads, c.capacity}), 0.01f, 1, n),
                  between(Shape(x, {s.by_place ? s.heads * s.n : s.heads}), -4, -0.1f, n),
                  floats(Shape(x, {s.n, s.groups, c.capacity}), n),
                  floats(Shape(x, {s.n, s.groups, c.capacity}), n)};
      add_state(c, s.n * s.hd * s.heads, rows > 1 ? 2 : 1, n);
      all.push_back(std::move(c));
    }
  return all;
}

struct DeltaSize {
  int s, few, d, heads;
  HeadMap map;
};
std::vector<Case> delta_cases(DType x) {
  std::vector<Case> all;
  Numbers n(34);
  for (const DeltaSize& s : {DeltaSize{16, 2, 16, 4, HeadMap::Modulo},
                             {16, 2, 24, 6, HeadMap::Blocks},
                             {128, 1, 128, 1, HeadMap::Modulo},
                             {9, 2, 80, 2, HeadMap::Blocks},
                             {5, 1, 7, 3, HeadMap::Blocks}})
    for (int rows : {1, kStateRows}) {
      if (x != DType::F32) continue;
      Case c = case_of(OpKind::DeltaRule,
                       format("s={} d={} heads={}/{} map={}", s.s, s.d, s.heads, s.few, int(s.map)), rows);
      c.params.i[0] = int(s.map);
      const float unit = 1 / std::sqrt(float(s.s));
      c.inputs = {floats(Shape(x, {s.s, s.few, c.capacity}), n, unit),
                  floats(Shape(x, {s.s, s.few, c.capacity}), n, unit),
                  floats(Shape(x, {s.d, s.heads, c.capacity}), n),
                  between(Shape(x, {s.heads, c.capacity}), 0, 1, n),
                  between(Shape(x, {s.heads, c.capacity}), -3, 0, n)};
      add_state(c, s.s * s.d * s.heads, rows > 1 ? 2 : 1, n);
      all.push_back(std::move(c));
    }
  return all;
}

}  // namespace

constinit const OpDef ShortConv = {
    .inputs = {{"x", Role::Rows},
               {"taps", Role::Weight},
               {"state", Role::State},
               {"sequence", Role::Sequence},
               {"pages", Role::Pages},
               {"bias", Role::Weight}},
    .operations = 8,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &x = c.in[0], &taps = c.in[1];
      if (!is_f32_rows(x) || !is_f32(taps) || taps.rank != 1)
        return c.refuse("x must be f32 rows, and the taps f32");
      const int64_t k = taps.dim[0] / x.dim[0];
      if (taps.dim[0] % x.dim[0] || k > kMaxTaps)
        return c.refuse("each channel must have the same 1 to 16 taps");
      if (!is_state(c.in[2], x.dim[0] * std::max<int64_t>(1, k - 1))) return c.refuse(kStateRule);
      if (!are_places(c.in[3], c.in[4], x.dim[1])) return c.refuse(kPlaceRule);
      if (c.in.size() > 5 && c.in[5] != Shape(DType::F32, {x.dim[0]}))
        return c.refuse("the bias must be f32, one per channel");
      return x;
    },
};
constinit const OpCheck ShortConvCheck = {
    .reference = convolve,
    .tolerance = roundings<1>,
    .cases = conv_cases,
    .bench =
        [](DType, int rows, int) {
          Bench b{format("{} x 4", kBenchWidth),
                  {{Shape(DType::F32, {kBenchWidth, rows}), {}}, {Shape(DType::F32, {kBenchWidth * 4}), {}}}};
          add_bench_state(b, kBenchWidth * 3, rows);
          return b;
        },
};

constinit const OpDef SelectiveScan = {
    .inputs = {{"x", Role::Rows},
               {"step", Role::Rows},
               {"a", Role::Weight},
               {"b", Role::Rows},
               {"c", Role::Rows},
               {"state", Role::State},
               {"sequence", Role::Sequence},
               {"pages", Role::Pages}},
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &x = c.in[0], &step = c.in[1], &a = c.in[2], &b = c.in[3];
      if (!is_f32(x) || x.rank != 3) return c.refuse("x must be f32[hd, heads, rows]");
      if (step != Shape(DType::F32, {x.dim[1], x.dim[2]}))
        return c.refuse("the step must be f32[heads, rows]");
      if (!is_f32(b) || b.rank != 3 || b.dim[2] != x.dim[2] || c.in[4] != b || x.dim[1] % b.dim[1])
        return c.refuse("b and c must be f32[N, groups, rows], and heads a multiple of the groups");
      if (!is_f32(a) || a.rank != 1 || (a.dim[0] != x.dim[1] && a.dim[0] != x.dim[1] * b.dim[0]))
        return c.refuse("a must have one value per head, or N");
      if (!is_state(c.in[5], b.dim[0] * x.dim[0] * x.dim[1])) return c.refuse(kStateRule);
      if (!are_places(c.in[6], c.in[7], x.dim[2])) return c.refuse(kPlaceRule);
      return x;
    },
    .cost = [](Cost& c, std::span<const Shape> in, const Shape& out,
               int64_t) { c.operations = 8.0 * double(out.count()) * double(in[3].dim[0]); },
};
constinit const OpCheck SelectiveScanCheck = {
    .reference = scan,
    .tolerance = roundings<1>,
    .cases = scan_cases,
    .bench =
        [](DType, int rows, int) {
          Bench b{"64 x 64 x 128",
                  {{Shape(DType::F32, {64, 64, rows}), {}},
                   {Shape(DType::F32, {64, rows}), {}},
                   {Shape(DType::F32, {64}), {}},
                   {Shape(DType::F32, {128, 1, rows}), {}},
                   {Shape(DType::F32, {128, 1, rows}), {}}}};
          add_bench_state(b, 64 * 64 * 128, rows);
          return b;
        },
};

constinit const OpDef DeltaRule = {
    .inputs = {{"q", Role::Rows},
               {"k", Role::Rows},
               {"v", Role::Rows},
               {"rate", Role::Rows},
               {"decay", Role::Rows},
               {"state", Role::State},
               {"sequence", Role::Sequence},
               {"pages", Role::Pages}},
    .integers = {"head map"},
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &q = c.in[0], &v = c.in[2];
      if (!is_f32(q) || q.rank != 3 || c.in[1] != q)
        return c.refuse("q and k must be f32[s, heads, rows] alike");
      if (!is_f32(v) || v.rank != 3 || v.dim[2] != q.dim[2] || v.dim[1] % q.dim[1])
        return c.refuse("v must be f32[d, heads, rows], its heads a multiple of q's");
      for (int i : {3, 4})
        if (c.in[size_t(i)] != Shape(DType::F32, {v.dim[1], v.dim[2]}))
          return c.refuse("rate and decay must be f32, one per head of v and row");
      if (c.params.i[0] < 0 || c.params.i[0] > int64_t(HeadMap::Blocks))
        return c.refuse("unknown map of heads");
      if (!is_state(c.in[5], q.dim[0] * v.dim[0] * v.dim[1])) return c.refuse(kStateRule);
      if (!are_places(c.in[6], c.in[7], q.dim[2])) return c.refuse(kPlaceRule);
      return v;
    },
    .cost = [](Cost& c, std::span<const Shape> in, const Shape& out,
               int64_t) { c.operations = 8.0 * double(out.count()) * double(in[0].dim[0]); },
};
constinit const OpCheck DeltaRuleCheck = {
    .reference = correct,
    .tolerance = roundings<1>,
    .cases = delta_cases,
    .bench =
        [](DType, int rows, int) {
          const BenchInput heads{Shape(DType::F32, {128, 16, rows}), {}},
              each{Shape(DType::F32, {16, rows}), {}};
          Bench b{"16 x 128 x 128", {heads, heads, heads, each, each}};
          add_bench_state(b, 16 * 128 * 128, rows);
          return b;
        },
};

}  // namespace gimbal::ops
