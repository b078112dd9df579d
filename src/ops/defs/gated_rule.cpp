// gated_rule(q[s, h, R], decay[s, h, R], k[s, hk, R], v[d, hk, R], state, sequence, pages, erase[2s, h, R])
// -> [d, h, R]: linear attention whose state forgets by key. S[s, d] of each head: first, with `erase` (a,
// then b of each head), found = S^T a; S = diag(decay) S + k v^T + b found^T; y = S^T q. The heads h are in
// hk blocks, each with one k and v. `before`: y is of the state before the row. `complement`: k times 1 -
// decay. The state is that of delta_rule (ops/defs/recurrent.cpp). Peng et al., "Eagle and Finch: RWKV with
// Matrix-Valued States and Dynamic Recurrence", 2024; "RWKV-7 'Goose' with Expressive Dynamic State
// Evolution", 2025; Yang et al., "Gated Linear Attention Transformers with Hardware-Efficient Training",
// 2024.
#include "ops/defs/recurrent.h"

namespace gimbal::ops {
namespace {

void forget(const reference::Call& c) {
  const auto s = size_t(c.in[0]->shape.dim[0]), heads = size_t(c.in[0]->shape.dim[1]),
             d = size_t(c.in[3]->shape.dim[0]), few = size_t(c.in[3]->shape.dim[1]);
  const bool before = c.params.i[0] != 0, complement = c.params.i[1] != 0, erases = c.in.size() > 7;
  for (int row = 0; row < c.rows; row++)
    for (size_t h = 0; h < heads; h++) {
      const size_t own = (size_t(row) * heads + h) * s, key = size_t(row) * few + h / (heads / few);
      const double *q = &c.x(0)[own], *decay = &c.x(1)[own], *k = &c.x(2)[key * s];
      const double* erase = erases ? &c.x(7)[2 * own] : nullptr;
      for (size_t v = 0; v < d; v++) {
        const size_t begin = state_begin(c, 4, row) + h * s * d;
        auto place = [&](size_t j) { return Place{c, begin + in_piece(v, d, s, j)}; };
        double found = 0, found_error = 0;
        for (size_t j = 0; erases && j < s; j++) {
          found += place(j).value() * erase[j];
          found_error += place(j).error() * std::fabs(erase[j]) + std::fabs(found);
        }
        double sum = 0, terms = 0;
        for (size_t j = 0; j < s; j++) {
          const Place p = place(j);
          const double old = p.value(), old_error = p.error(),
                       kept = complement ? k[j] * (1 - decay[j]) : k[j],
                       new_part = kept * c.x(3)[key * d + v], put_back = erases ? erase[s + j] * found : 0,
                       now = old * decay[j] + new_part + put_back;
          // 1 - decay, two products, and the sums.
          const double key_error = complement ? std::fabs(k[j] * c.x(3)[key * d + v]) : 0;
          const double error = old_error * std::fabs(decay[j]) + 3 * std::fabs(new_part) + key_error +
                               std::fabs(old * decay[j] + new_part) +
                               (erases ? std::fabs(erase[s + j]) * found_error : 0) + std::fabs(now);
          c.put_state(p.at, now, error);
          const double read = before ? old : now;
          sum += read * q[j];
          terms += (before ? old_error : error) * std::fabs(q[j]) + std::fabs(sum);
        }
        c.put((size_t(row) * heads + h) * d + v, sum, terms);
      }
    }
}

struct GatedSize {
  int s, heads, d, few;
  bool before, complement, erases;
};
std::vector<Case> gated_cases(DType x) {
  std::vector<Case> all;
  Numbers n(66);
  for (const GatedSize& s : {GatedSize{16, 3, 16, 3, true, false, false},
                             {64, 2, 64, 2, false, false, true},
                             {128, 1, 128, 1, false, false, true},
                             {24, 6, 40, 2, false, true, false},
                             {9, 2, 80, 2, false, false, true},
                             {5, 3, 7, 1, true, true, true},
                             {7, 4, 33, 4, true, false, false}})
    for (int rows : {1, kStateRows}) {
      if (x != DType::F32) continue;
      Case c =
          case_of(OpKind::GatedRule,
                  format("s={} d={} heads={}/{}{}{}{}", s.s, s.d, s.heads, s.few, s.before ? " before" : "",
                         s.complement ? " complement" : "", s.erases ? " erases" : ""),
                  rows);
      c.params.i[0] = s.before, c.params.i[1] = s.complement;
      const float unit = 1 / std::sqrt(float(s.s));
      c.inputs = {floats(Shape(x, {s.s, s.heads, c.capacity}), n, unit),
                  between(Shape(x, {s.s, s.heads, c.capacity}), 0, 1, n),
                  floats(Shape(x, {s.s, s.few, c.capacity}), n, unit),
                  floats(Shape(x, {s.d, s.few, c.capacity}), n)};
      add_state(c, s.s * s.d * s.heads, rows > 1 ? 2 : 1, n);
      if (s.erases) c.inputs.push_back(floats(Shape(x, {2 * s.s, s.heads, c.capacity}), n, unit));
      all.push_back(std::move(c));
    }
  return all;
}

}  // namespace

constinit const OpDef GatedRule = {
    .inputs = {{"q", Role::Rows},
               {"decay", Role::Rows},
               {"k", Role::Rows},
               {"v", Role::Rows},
               {"state", Role::State},
               {"sequence", Role::Sequence},
               {"pages", Role::Pages},
               {"erase", Role::Rows}},
    .integers = {"before", "complement"},
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &q = c.in[0], &k = c.in[2], &v = c.in[3];
      if (!is_f32(q) || q.rank != 3 || c.in[1] != q)
        return c.refuse("q and decay must be f32[s, heads, rows] alike");
      if (!is_f32(v) || v.rank != 3 || v.dim[2] != q.dim[2] || q.dim[1] % v.dim[1])
        return c.refuse("v must be f32[d, heads, rows], and q's heads a multiple of its heads");
      if (k != Shape(DType::F32, {q.dim[0], v.dim[1], q.dim[2]}))
        return c.refuse("k must be f32[s, heads, rows] with the heads of v");
      for (int64_t way : {c.params.i[0], c.params.i[1]})
        if (way != 0 && way != 1) return c.refuse("'before' and 'complement' are 0 or 1");
      if (!is_state(c.in[4], q.dim[0] * v.dim[0] * q.dim[1])) return c.refuse(kStateRule);
      if (!are_places(c.in[5], c.in[6], q.dim[2])) return c.refuse(kPlaceRule);
      if (c.in.size() > 7 && c.in[7] != Shape(DType::F32, {2 * q.dim[0], q.dim[1], q.dim[2]}))
        return c.refuse("what is erased must be f32[2 s, heads, rows] with the heads of q");
      return Shape(DType::F32, {v.dim[0], q.dim[1], q.dim[2]});
    },
    .cost = [](Cost& c, std::span<const Shape> in, const Shape& out,
               int64_t) { c.operations = 8.0 * double(out.count()) * double(in[0].dim[0]); },
};
constinit const OpCheck GatedRuleCheck = {
    .reference = forget,
    .tolerance = roundings<1>,
    .cases = gated_cases,
    .bench =
        [](DType, int rows, int) {
          const BenchInput heads{Shape(DType::F32, {64, 32, rows}), {}};
          Bench b{"32 x 64 x 64", {heads, heads, heads, heads}};
          add_bench_state(b, 32 * 64 * 64, rows);
          b.inputs.push_back({Shape(DType::F32, {128, 32, rows}), {}});
          return b;
        },
};

}  // namespace gimbal::ops
