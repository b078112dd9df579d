// attention(q[hd, heads, R], keys, values, position i32[R], sequence i32[R], pages i32[p, s]) -> as q:
// softmax over the positions of the row's sequence up to its own (`window` > 0: the last so many of them) of
// q * key * scale, and the mean of the values with these weights. Heads of q share heads of the cache, `heads
// / kv_heads` each.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/bytes.h"
#include "ops/defs/caches.h"

namespace gimbal::ops {
namespace {

// How many roundings the score of one key may be off by, as a relative error of its weight: each partial sum
// of the dot product is rounded once, so is its product with the scale, its distance to the maximum, and a
// weight each time that a later tile has a larger maximum; exp() rounds a few times.
struct Score {
  double value = 0, roundings = 0;
  Score(const double* q, const double* k, int hd, double scale, double tiles) {
    for (int d = 0; d < hd; d++) value += q[d] * k[d], roundings += std::fabs(value);
    value *= scale;
    roundings = (roundings * std::fabs(scale)) + std::fabs(value) + tiles + kExpRoundings;
  }
  static constexpr double kExpRoundings = 4;
};

void attend(const reference::Call& c) {
  const reference::Tensor &q = *c.in[0], &keys = *c.in[1], &values = *c.in[2], &position = *c.in[3];
  const CacheIndex at{*c.in[4], *c.in[5]};
  const int64_t window = c.params.i[1];
  const int hd = int(q.shape.dim[0]), heads = int(q.shape.dim[1]), group = heads / int(keys.shape.dim[1]);
  for (int r = 0; r < c.rows; r++)
    for (int h = 0; h < heads; h++) {
      const auto head_at = size_t((r * heads + h) * hd);
      const auto pos = int64_t(position.values[size_t(r)]);
      const int64_t first = window > 0 ? std::max<int64_t>(0, pos - window + 1) : 0;
      const double tiles = double(pos / kPagePositions - first / kPagePositions + 1);
      auto row_of = [&](const reference::Tensor& cache, int64_t j) {
        return &cache.values[at.element(cache.shape, r, j, h / group, 0)];
      };
      std::vector<Score> scores;
      double best = -INFINITY;
      for (int64_t j = first; j <= pos; j++) {
        scores.emplace_back(&q.values[head_at], row_of(keys, j), hd, c.params.f[0], tiles);
        best = std::max(best, scores.back().value);
      }
      double total = 0, off = 0;  // off: roundings of the sum of the weights that come of the scores
      std::vector<double> weight;
      for (Score& s : scores) {
        s.roundings += best - s.value;
        weight.push_back(std::exp(s.value - best));
        total += weight.back();
      }
      for (size_t j = 0; j < scores.size(); j++) weight[j] /= total, off += weight[j] * scores[j].roundings;
      off += 2 * tiles + 8;  // the sum itself: a tree in each tile; and the division by it
      for (size_t d = 0; d < size_t(hd); d++) {
        double y = 0, roundings = 0;
        for (size_t j = 0; j < scores.size(); j++) {
          const double t = weight[j] * row_of(values, first + int64_t(j))[d];
          y += t;
          roundings += std::fabs(y) + std::fabs(t) * scores[j].roundings;
        }
        c.put(head_at + d, y, roundings + std::fabs(y) * off);
      }
    }
}

struct HeadSize {
  int hd, heads, kv_heads, positions, rows, window, sequences;
  float queries = 1;  // how large: 50 times as large, a softmax that leaves the maximum out overflows
};
constexpr HeadSize kHeads[] = {
    {8, 2, 1, 1, 1, 0, 1},       {32, 1, 1, 1, 1, 0, 1},    {16, 4, 4, 17, 1, 0, 1},
    {32, 4, 2, 63, 3, 0, 1},     {64, 2, 1, 64, 5, 0, 1},   {80, 3, 3, 65, 2, 0, 1},
    {128, 2, 2, 130, 4, 0, 1},   {20, 2, 1, 200, 7, 50, 1}, {64, 4, 1, 129, 2, 64, 1},
    {32, 7, 1, 150, 3, 17, 2},   {96, 6, 2, 77, 5, 0, 3},   {64, 2, 1, 130, 3, 0, 1, 50},
    {32, 4, 2, 70, 2, 20, 2, 50}};

// Rows to be written to a cache. Among them heads of zeros, of numbers that a half rounds to zero, and of
// some that it holds in a few bits only.
CaseInput cache_rows(const HeadSize& s, Numbers& n) {
  CaseInput in = floats(Shape(DType::F32, {s.hd, s.kv_heads, s.positions * s.sequences}), n);
  const float odd[] = {0, 1e-7f, 3e-6f};
  for (size_t i = 0; i < std::size(odd) && int(i) + 1 < s.positions; i++)
    for (size_t d = 0; d < size_t(s.hd); d++) {
      std::byte* at = &in.dense[(i * size_t(s.kv_heads * s.hd) + d) * 4];
      const float v = read_le<float>(at) * odd[i];
      std::memcpy(at, &v, 4);
    }
  return in;
}

}  // namespace

std::vector<Case> attention_cases(OpKind of, DType cache) {
  std::vector<Case> all;
  if (!has(kCacheTypes, cache)) return all;
  Numbers n(uint64_t(cache) + 77);
  for (const HeadSize& s : kHeads) {
    if (s.hd % info(cache).block) continue;
    const int pages = (s.positions + kPagePositions - 1) / kPagePositions + 1;
    Case c{case_name(of, cache,
                     format("hd={} heads={}/{} positions={} rows={} window={} sequences={} queries={}", s.hd,
                            s.heads, s.kv_heads, s.positions, s.rows, s.window, s.sequences, s.queries)),
           OpKind::Attention,
           {},
           {},
           s.rows,
           s.rows,
           cache};
    c.params.f[0] = 1.f / std::sqrt(float(s.hd));
    c.params.i[1] = s.window;
    c.inputs.push_back(floats(Shape(DType::F32, {s.hd, s.heads, s.rows}), n, s.queries));
    for (int kv = 0; kv < 2; kv++) c.inputs.push_back(cache_rows(s, n));
    std::vector<int32_t> position, sequence, table(size_t(pages), 0);  // sequence 0 is nobody's
    for (int r = 0; r < s.rows; r++)
      position.push_back(std::max(0, s.positions - 1 - 3 * r)), sequence.push_back(1 + r % s.sequences);
    for (int q = 0; q < s.sequences; q++)  // pages out of order and between each other
      for (int i = 0; i < pages; i++) table.push_back((i + 1) % pages * s.sequences + q);
    c.inputs.push_back(integers(Shape(DType::I32, {s.rows}), position));
    c.inputs.push_back(integers(Shape(DType::I32, {s.rows}), sequence));
    c.inputs.push_back(integers(Shape(DType::I32, {pages, 1 + s.sequences}), table));
    all.push_back(std::move(c));
  }
  return all;
}

BenchPlace::BenchPlace(DType cache_type, int rows) {
  constexpr int kPositions = 4096;
  const bool prompt = rows >= 64;
  const int positions = std::max(kPositions, rows),
            page_count = (positions + kPagePositions - 1) / kPagePositions;
  cache = {Shape(cache_type, {kBenchHeadDim, kBenchKvHeads, kPagePositions, page_count}), {}};
  position = bench_integers(rows, prompt ? 0 : kPositions - rows, 1, positions);
  sequence = bench_integers(rows, 0, 0, 1);
  pages = {Shape(DType::I32, {page_count, 1}), {}};
  for (int i = 0; i < page_count; i++) pages.whole.push_back(i);
}

constinit const OpDef Attention = {
    .inputs = {{"q", Role::Rows},
               {"keys", Role::Cache},
               {"values", Role::Cache},
               {"position", Role::Position},
               {"sequence", Role::Sequence},
               {"pages", Role::Pages}},
    .floats = {"scale"},
    .integers = {"", "window"},
    .product = true,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &q = c.in[0], &keys = c.in[1], &values = c.in[2];
      if (q.dim[0] > kMaxHeadDim) return c.refuse("a head may have at most 1024 values");
      if (!is_f32(q) || q.rank != 3) return c.refuse("q must be f32[hd, heads, rows]");
      if (!is_cache(keys) || !is_cache(values) || keys.type != values.type || keys.dim[1] != values.dim[1] ||
          keys.dim[3] != values.dim[3])
        return c.refuse("keys and values must be caches of the same format, heads and pages");
      if (keys.dim[0] != q.dim[0] || values.dim[0] != q.dim[0] || q.dim[1] % keys.dim[1])
        return c.refuse("q's heads must be equally long and a multiple of the cache's");
      if (!is_place_in_caches(c.in[3], c.in[4], c.in[5], q.dim[2])) return c.refuse(kPlaceRule);
      return q;
    },
    // Every row reads the keys and values before it; heads that share a KV head read them once.
    .cost =
        [](Cost& c, std::span<const Shape> in, const Shape&, int64_t context) {
          const double kv = double(row_bytes(in[1].type, in[1].dim[0])) * double(in[1].dim[1] * context);
          c.bytes_read = double(in[0].bytes()) + 2.0 * kv * double(in[0].dim[2]);
          c.operations = 4.0 * double(in[0].count()) * double(context);
        },
};

constinit const OpCheck AttentionCheck = {
    .named_by = 1,
    .reference = attend,
    .tolerance = roundings<1>,  // the reference's magnitude counts them: they depend on the numbers
    .cases = [](DType cache) { return attention_cases(OpKind::Attention, cache); },
    .bench =
        [](DType cache, int rows, int) {
          const BenchPlace at(cache, rows);
          OpParams p;
          p.f[0] = 1 / std::sqrt(float(kBenchHeadDim));
          return Bench{format("{}/{} heads of {}", kBenchHeads, kBenchKvHeads, kBenchHeadDim),
                       {{Shape(DType::F32, {kBenchHeadDim, kBenchHeads, rows}), {}},
                        at.cache,
                        at.cache,
                        at.position,
                        at.sequence,
                        at.pages},
                       p,
                       true};
        },
};

}  // namespace gimbal::ops
