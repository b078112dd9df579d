// Of an indexer, which chooses the positions that a row attends to (DeepSeek-AI, "DeepSeek-V3.2: Pushing the
// Frontier of Open Large Language Models", 2025).
//
// index_scores(q[hd, h, R], keys, weights f32[h, R], position i32[R], sequence i32[R], pages i32[p, s]) ->
// f32[n, R]: for each position of the row's sequence up to the row's own the sum over the heads of weight *
// max(q * key, 0); kHidden for later ones. The cache has one head. n is a multiple of 64 and larger than any
// position.
//
// keep_top(x f32[n, R], top f32[2k, R]) -> f32[n, R], with `top` as top_k gives it for x, and k at most n: 0
// where x has one of the k first values, kHidden elsewhere.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "ops/defs/caches.h"

namespace gimbal::ops {
namespace {

constexpr DTypeSet kIndexTypes = set_of(DType::F32, DType::F16, DType::BF16);

void index_scores(const reference::Call& c) {
  const reference::Tensor &q = *c.in[0], &keys = *c.in[1];
  const CacheIndex at{*c.in[4], *c.in[5]};
  const int64_t n = c.params.i[0];
  const int hd = int(q.shape.dim[0]), heads = int(q.shape.dim[1]);
  for (int r = 0; r < c.rows; r++)
    for (int64_t j = 0; j < n; j++) {
      const auto place = size_t(n * r + j);
      if (double(j) > c.x(3)[size_t(r)]) {
        c.put(place, double(kHidden), 0);
        continue;
      }
      const double* key = &keys.values[at.element(keys.shape, r, j, 0, 0)];
      double sum = 0, rounded = 0;
      for (int h = 0; h < heads; h++) {
        const double* one = &q.values[size_t((r * heads + h) * hd)];
        const double weight = c.x(2)[size_t(r * heads + h)];
        double score = 0, partial = 0;
        for (int d = 0; d < hd; d++) score += one[d] * key[d], partial += std::fabs(score);
        sum += weight * std::max(score, 0.0);
        rounded += std::fabs(weight) * partial + std::fabs(sum);
      }
      c.put(place, sum, rounded);
    }
}

// Whether value i of a row is one of those before or at the last of `top`, by the order of top_k.
void keep_top(const reference::Call& c) {
  const auto n = size_t(c.in[0]->shape.dim[0]), k = size_t(c.in[1]->shape.dim[0]) / 2;
  for (size_t i = 0; i < c.computed; i++) {
    const double* top = &c.x(1)[i / n * 2 * k];
    const double last = top[k - 1], place = top[2 * k - 1], x = c.x(0)[i];
    const bool same = std::isnan(x) ? std::isnan(last) : x == last;
    const bool before = std::isnan(x) ? !std::isnan(last) : x > last;
    c.put(i, before || (same && double(i % n) <= place) ? 0 : double(kHidden), 0);
  }
}

struct IndexSize {
  int hd, heads, positions, rows, sequences;
};
constexpr IndexSize kIndexes[] = {{8, 1, 1, 1, 1},    {32, 2, 64, 3, 1},   {64, 5, 150, 4, 2},
                                  {128, 9, 90, 2, 1}, {20, 16, 330, 3, 1}, {128, 17, 65, 1, 3},
                                  {32, 4, 4200, 2, 1}};

std::vector<Case> index_cases(DType cache) {
  std::vector<Case> all;
  if (!has(kIndexTypes, cache)) return all;
  Numbers n(uint64_t(cache) + 68);
  for (const IndexSize& s : kIndexes) {
    const int pages = (s.positions + kPagePositions - 1) / kPagePositions + 1;
    Case c{case_name(OpKind::IndexScores, cache,
                     format("hd={} heads={} positions={} rows={} sequences={}", s.hd, s.heads, s.positions,
                            s.rows, s.sequences)),
           OpKind::IndexScores,
           {},
           {},
           s.rows,
           s.rows,
           cache};
    c.params.i[0] = pages * kPagePositions;
    c.inputs.push_back(floats(Shape(DType::F32, {s.hd, s.heads, s.rows}), n));
    c.inputs.push_back(floats(Shape(DType::F32, {s.hd, 1, s.positions * s.sequences}), n));
    c.inputs.push_back(floats(Shape(DType::F32, {s.heads, s.rows}), n));
    add_places(c, s.positions, pages, s.sequences, 3);
    all.push_back(std::move(c));
  }
  return all;
}

// Rows of few different numbers, so that many are equal, with the last of the k first among them.
std::vector<Case> keep_cases(DType x) {
  std::vector<Case> all;
  if (x != DType::F32) return all;
  Numbers numbers(69);
  for (const auto& [n, k, rows] :
       {std::tuple(1, 1, 1), {64, 1, 3}, {64, 64, 2}, {130, 20, 5}, {700, 333, 2}, {8192, 2048, 2}}) {
    Case c{case_name(OpKind::KeepTop, x, format("n={} k={} rows={}", n, k, rows)),
           OpKind::KeepTop,
           {},
           {},
           rows,
           rows};
    std::vector<float> values, top;
    for (int r = 0; r < rows; r++) {
      const size_t begin = values.size();
      for (int i = 0; i < n; i++) {
        const int one = numbers.below(9);
        values.push_back(one == 8 ? NAN : one == 7 ? -0.0f : float(one - 4) / 3);
      }
      std::vector<int> order;
      for (int i = 0; i < n; i++) order.push_back(i);
      const auto rank = [&](int i) {
        const float v = values[begin + size_t(i)];
        return std::pair(std::isnan(v) ? -INFINITY : -v + 0.0f, i);
      };
      std::sort(order.begin(), order.end(), [&](int a, int b) { return rank(a) < rank(b); });
      for (int i = 0; i < k; i++) top.push_back(values[begin + size_t(order[size_t(i)])]);
      for (int i = 0; i < k; i++) top.push_back(float(order[size_t(i)]));
    }
    for (const auto& [width, all_of] : {std::pair(n, &values), {2 * k, &top}}) {
      CaseInput in = floats(Shape(x, {width, rows}), numbers);
      std::memcpy(in.dense.data(), all_of->data(), in.dense.size());
      c.inputs.push_back(std::move(in));
    }
    all.push_back(std::move(c));
  }
  return all;
}

}  // namespace

constinit const OpDef IndexScores = {
    .inputs = {{"q", Role::Rows},
               {"keys", Role::Cache},
               {"weights", Role::Rows},
               {"position", Role::Position},
               {"sequence", Role::Sequence},
               {"pages", Role::Pages}},
    .integers = {"positions"},
    .product = true,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &q = c.in[0], &keys = c.in[1];
      const int64_t n = c.params.i[0];
      if (!is_f32(q) || q.rank != 3 || q.dim[0] > kMaxHeadDim)
        return c.refuse("q must be f32[hd, heads, rows] with heads of at most 1024 values");
      if (!is_cache(keys) || !has(kIndexTypes, keys.type) || keys.dim[1] != 1 || keys.dim[0] != q.dim[0])
        return c.refuse("keys must be a cache of f32, f16 or bf16 with one head, as long as q's");
      if (c.in[2] != Shape(DType::F32, {q.dim[1], q.dim[2]}))
        return c.refuse("weights must be f32, one per head and row");
      if (!is_place_in_caches(c.in[3], c.in[4], c.in[5], q.dim[2])) return c.refuse(kPlaceRule);
      if (n < 1 || n % kPagePositions || n / kPagePositions > c.in[5].dim[0])
        return c.refuse("the positions must be a multiple of 64, and at most those of the pages");
      return Shape(DType::F32, {n, q.dim[2]});
    },
    .cost =
        [](Cost& c, std::span<const Shape> in, const Shape& out, int64_t context) {
          const auto rows = double(in[0].dim[2]);
          c.bytes_read =
              double(in[0].bytes()) + double(row_bytes(in[1].type, in[1].dim[0])) * double(context) * rows;
          c.bytes_written = double(out.bytes());
          c.operations = 2.0 * double(in[0].dim[0] * in[0].dim[1] * context) * rows;
        },
};

constinit const OpCheck IndexScoresCheck = {
    .named_by = 1,
    .reference = index_scores,
    .tolerance = roundings<1>,  // the reference's magnitude counts them
    .cases = index_cases,
    .bench =
        [](DType cache, int rows, int) {
          const BenchPlace at(cache, rows);
          constexpr int kHeads = 64;
          OpParams p;
          p.i[0] = at.pages.shape.dim[0] * kPagePositions;
          const int64_t pages = at.pages.shape.dim[0];
          return Bench{format("{} heads of {}", kHeads, kBenchHeadDim),
                       {{Shape(DType::F32, {kBenchHeadDim, kHeads, rows}), {}},
                        {Shape(cache, {kBenchHeadDim, 1, kPagePositions, pages}), {}},
                        {Shape(DType::F32, {kHeads, rows}), {}},
                        at.position,
                        at.sequence,
                        at.pages},
                       p,
                       true};
        },
};

constinit const OpDef KeepTop = {
    .inputs = {{"x", Role::Rows}, {"top", Role::Rows}},
    .operations = 1,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &x = c.in[0], &top = c.in[1];
      if (!is_f32_rows(x) || !is_f32_rows(top) || x.dim[1] != top.dim[1])
        return c.refuse("x and top must be f32 rows, as many of both");
      if (top.dim[0] % 2 || top.dim[0] / 2 > x.dim[0])
        return c.refuse("top must have values and places of at most all of x");
      return x;
    },
};

constinit const OpCheck KeepTopCheck = {
    .reference = keep_top,
    .tolerance = roundings<0>,
    .cases = keep_cases,
    .bench =
        [](DType, int rows, int) {
          constexpr int kTop = 2048;
          Bench b = bench_of_rows(1, rows);
          b.inputs.push_back({Shape(DType::F32, {2 * kTop, rows}), {}});
          return b;
        },
};

}  // namespace gimbal::ops
