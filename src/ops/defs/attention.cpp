// attention(q[hd, heads, R], keys, values, position i32[R], sequence i32[R], pages i32[p, s],
// seen i32[2, R], sinks f32[heads]) -> [vd, heads, R]: softmax of q * key * scale over the
// positions of the row's sequence up to the row's own (`window` > 0: only the last so many;
// with `seen`: from the first to the last position of the row's pair), and the mean of the
// values with these weights. heads / kv_heads heads of q share a head of the cache. `cap`:
// scores become cap * tanh(score / cap). `alibi`: the largest bias; scores lose slope(head)
// per position between row and key. A sink is an additional score of its head without a value.
// `distances` n > 0: in place of sinks, biases f32[(2n + 1) * heads], for each head those of the
// distances -n to n of a key's position from the row's; keys further away have the last one's. `added`: in
// place of `seen` and without sinks, f32[n, R], for each row a number that is added to the score of each
// position; n is a multiple of 64 and larger than any position.
#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "base/bytes.h"
#include "ops/defs/caches.h"

namespace gimbal::ops {
namespace {

// Error bound of one key's score in roundings, which is the relative error of its weight: one for each
// partial sum of the dot product, for its product with the scale, for its distance to the maximum, and one
// for the weight whenever a later tile has a larger maximum; exp() adds a few.
struct Score {
  double value = 0, roundings = 0;
  Score(const double* q, const double* k, int hd, double scale, double tiles) {
    for (int d = 0; d < hd; d++) value += q[d] * k[d], roundings += std::fabs(value);
    value *= scale;
    roundings = (roundings * std::fabs(scale)) + std::fabs(value) + tiles + kExpRoundings;
  }
  explicit Score(double sink, double tiles) : value(sink), roundings(tiles + kExpRoundings) {}
  // tanh is made of exp: some roundings of 1.
  void cap(double c) { value = c * std::tanh(value / c), roundings += 4 * c; }
  void add(double bias) { value += bias, roundings += std::fabs(value); }
  // Roundings: the slope's exponent, its exp(), and the sum.
  void subtract(double slope, double distance) {
    const double bias = slope * distance;
    value -= bias;
    roundings += std::fabs(bias) * (4 + 2 * std::fabs(std::log(slope))) + std::fabs(value);
  }
  static constexpr double kExpRoundings = 4;
};
// Kernels' exp() ends at the smallest normal number: the weight of a hidden position, in roundings.
constexpr double kLeastWeight = 0x1p-100;

// ALiBi (Press et al., "Train Short, Test Long", 2022): of h heads, the first p (the largest power of two)
// have the slopes 2^(-bias / p), 2^(-2 bias / p) ...; the others lie between them.
double slope_of(double bias, int head, int heads) {
  const int p = int(std::bit_floor(unsigned(heads)));
  return head < p ? std::exp2(-bias * (head + 1) / p) : std::exp2(-bias / 2 * (2 * (head - p) + 1) / p);
}

void attend(const reference::Call& c) {
  const reference::Tensor &q = *c.in[0], &keys = *c.in[1], &values = *c.in[2], &position = *c.in[3];
  const CacheIndex at{*c.in[4], *c.in[5]};
  const int64_t window = c.params.i[1];
  const bool chosen = c.in.size() > 6 && !c.params.i[4];
  const double cap = c.params.f[1], alibi = c.params.f[2];
  const int64_t distances = c.params.i[3];
  const bool added = c.params.i[4] != 0;
  const int hd = int(q.shape.dim[0]), vd = int(values.shape.dim[0]), heads = int(q.shape.dim[1]),
            group = heads / int(keys.shape.dim[1]);
  for (int r = 0; r < c.rows; r++)
    for (int h = 0; h < heads; h++) {
      const auto head_at = size_t(r * heads + h);
      const auto pos = int64_t(position.values[size_t(r)]);
      const int64_t first = chosen       ? int64_t(c.x(6)[2 * size_t(r)])
                            : window > 0 ? std::max<int64_t>(0, pos - window + 1)
                                         : 0;
      const int64_t last = chosen ? int64_t(c.x(6)[2 * size_t(r) + 1]) : pos;
      const double tiles = double(last / kPagePositions - first / kPagePositions + 1);
      auto row_of = [&](const reference::Tensor& cache, int64_t j) {
        return &cache.values[at.element(cache.shape, r, j, h / group, 0)];
      };
      std::vector<Score> scores;
      double best = -INFINITY;
      for (int64_t j = first; j <= last; j++) {
        Score s(&q.values[head_at * size_t(hd)], row_of(keys, j), hd, c.params.f[0], tiles);
        if (cap > 0) s.cap(cap);
        if (alibi > 0) s.subtract(slope_of(alibi, h, heads), std::fabs(double(pos - j)));
        if (added) s.add(c.x(6)[size_t(c.in[6]->shape.dim[0] * r + j)]);
        if (distances > 0) {
          const int64_t distance = std::clamp(j - pos, -distances, distances);
          s.add(c.x(7)[size_t((2 * distances + 1) * h + distances + distance)]);
        }
        best = std::max(best, s.value);
        scores.push_back(s);
      }
      if (c.in.size() > 7 && distances == 0) {  // after the others, without a value
        scores.emplace_back(c.x(7)[size_t(h)], tiles);
        best = std::max(best, scores.back().value);
      }
      double total = 0, off = 0;  // off: roundings in the sum of the weights that come from the scores
      std::vector<double> weight;
      for (Score& s : scores) {
        s.roundings += best - s.value;
        weight.push_back(std::exp(s.value - best));
        total += weight.back();
      }
      for (size_t j = 0; j < scores.size(); j++) weight[j] /= total, off += weight[j] * scores[j].roundings;
      off += 2 * tiles + 8;  // the sum itself, a tree in each tile, and the division by it
      for (size_t d = 0; d < size_t(vd); d++) {
        double y = 0, roundings = 0;
        for (size_t j = 0; j < size_t(last - first + 1); j++) {
          const double t = weight[j] * row_of(values, first + int64_t(j))[d];
          y += t;
          roundings += std::fabs(y) + std::fabs(t) * scores[j].roundings;
          if (added) roundings += std::fabs(row_of(values, first + int64_t(j))[d]) * kLeastWeight;
        }
        c.put(head_at * size_t(vd) + d, y, roundings + std::fabs(y) * off);
      }
    }
}

struct HeadSize {
  int hd, heads, kv_heads, positions, rows, window, sequences;
  float queries = 1;  // magnitude: at 50, a softmax that does not subtract the maximum overflows
  int vd = 0;         // 0: as hd
  float cap = 0, alibi = 0;
  // Every row sees its whole sequence instead of the positions up
  // to its own; a window extends to both sides.
  bool both_sides = false;
  bool sinks = false;
  bool not_finite = false;  // some values to write to the caches are NaN or infinite
  int distances = 0;
  bool added = false;  // two of three positions are hidden
};
constexpr HeadSize kHeads[] = {{8, 2, 1, 1, 1, 0, 1},
                               {32, 1, 1, 1, 1, 0, 1},
                               {16, 4, 4, 17, 1, 0, 1},
                               {32, 4, 2, 63, 3, 0, 1},
                               {64, 2, 1, 64, 5, 0, 1},
                               {80, 3, 3, 65, 2, 0, 1},
                               {128, 2, 2, 130, 4, 0, 1},
                               {32, 2, 1, 600, 2, 0, 1},  // more tiles than any kernel takes at once
                               {20, 2, 1, 200, 7, 50, 1},
                               {64, 4, 1, 129, 2, 64, 1},
                               {32, 7, 1, 150, 3, 17, 2},
                               {96, 6, 2, 77, 5, 0, 3},
                               {64, 2, 1, 130, 3, 0, 1, 50},
                               {32, 4, 2, 70, 2, 20, 2, 50},
                               {24, 4, 1, 70, 2, 0, 1, 1, 16},
                               {96, 2, 2, 130, 3, 0, 1, 1, 32},
                               {32, 3, 1, 100, 2, 0, 1, 1, 160},
                               {32, 2, 1, 90, 2, 0, 1, 20, 0, 5},
                               {32, 6, 6, 140, 3, 0, 2, 1, 0, 0, 8},
                               {64, 12, 4, 90, 2, 70, 1, 1, 0, 0, 5},
                               {32, 4, 2, 150, 4, 0, 2, 1, 0, 0, 0, true},
                               {32, 4, 1, 200, 5, 40, 1, 1, 64, 0, 0, true},
                               {32, 8, 1, 100, 2, 17, 1, 5, 0, 0, 0, true, true},
                               {64, 5, 5, 3, 1, 0, 1, 1, 32, 0, 0, true, true},
                               {64, 4, 2, 70, 3, 0, 1, 1, 0, 0, 0, false, false, true},
                               {32, 6, 6, 140, 3, 0, 2, 1, 0, 0, 8, true},
                               {64, 5, 1, 90, 4, 33, 1, 1, 0, 0, 8, true},
                               {32, 6, 3, 150, 4, 0, 2, 1, 0, 0, 0, true, false, false, 19},
                               {64, 3, 1, 70, 2, 40, 1, 5, 32, 0, 0, true, false, false, 128},
                               {32, 4, 1, 330, 3, 0, 1, 1, 0, 0, 0, false, false, false, 0, true},
                               {96, 6, 2, 77, 5, 0, 3, 1, 32, 0, 0, false, false, false, 0, true},
                               {64, 12, 4, 20, 1, 0, 1, 5, 0, 0, 0, false, false, false, 0, true},
                               {32, 2, 1, 4200, 2, 0, 1, 1, 0, 0, 0, false, false, false, 0, true}};

// Rows to write to a cache, including heads of zeros, of numbers that f16 rounds to zero, and of subnormal
// f16 numbers with few bits.
CaseInput cache_rows(const HeadSize& s, int width, Numbers& n) {
  CaseInput in = floats(Shape(DType::F32, {width, s.kv_heads, s.positions * s.sequences}), n);
  const float odd[] = {0, 1e-7f, 3e-6f};
  for (size_t i = 0; i < std::size(odd) && int(i) + 1 < s.positions; i++)
    for (size_t d = 0; d < size_t(width); d++) {
      std::byte* at = &in.dense[(i * size_t(s.kv_heads * width) + d) * 4];
      const float v = read_le<float>(at) * odd[i];
      std::memcpy(at, &v, 4);
    }
  return in;
}

// A head of keys with a NaN makes all that its queries see NaN; values with one pass it on where they have
// it. In a cache of blocks, an infinite value makes a NaN of its block.
void put_not_finite(DType cache, int kv_heads, CaseInput& keys, CaseInput& values) {
  const auto put = [&](CaseInput& in, int position, int head, int at, float v) {
    const auto width = size_t(in.shape.dim[0]);
    std::memcpy(&in.dense[((size_t(position) * size_t(kv_heads) + size_t(head)) * width + size_t(at)) * 4],
                &v, 4);
  };
  put(keys, 5, 0, 17, NAN);
  put(values, 9, 1, 3, NAN);
  if (info(cache).block > 1) put(values, 11, 1, 40, INFINITY);
}

// Of a row, the first two tiles are hidden but for one position, if there are more; of the others two of
// three.
CaseInput hidden_scores(int positions, int rows, Numbers& n) {
  CaseInput in = floats(Shape(DType::F32, {positions, rows}), n);
  for (int r = 0; r < rows; r++)
    for (int j = 0; j < positions; j++) {
      const bool begins = j < std::min(2 * kPagePositions, positions - 2 * kPagePositions);
      if (begins ? j != 70 : j % 3 != r % 3)
        std::memcpy(&in.dense[(size_t(r) * size_t(positions) + size_t(j)) * 4], &kHidden, 4);
    }
  return in;
}

}  // namespace

std::vector<Case> attention_cases(OpKind of, DType cache) {
  std::vector<Case> all;
  if (!has(kCacheTypes, cache)) return all;
  Numbers n(uint64_t(cache) + 77);
  for (const HeadSize& s : kHeads) {
    const int vd = s.vd ? s.vd : s.hd;
    if (s.hd % info(cache).block || vd % info(cache).block) continue;
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
    if (s.vd) c.name += format(" values={}", s.vd);
    if (s.cap > 0) c.name += format(" cap={}", s.cap);
    if (s.alibi > 0) c.name += format(" alibi={}", s.alibi);
    if (s.both_sides) c.name += " both sides";
    if (s.sinks) c.name += " sinks";
    if (s.distances) c.name += format(" distances={}", s.distances);
    if (s.added) c.name += " added";
    if (s.not_finite) c.name += " not finite";
    c.params.f[0] = 1.f / std::sqrt(float(s.hd)), c.params.f[1] = s.cap, c.params.f[2] = s.alibi;
    c.params.i[1] = s.both_sides ? 0 : s.window, c.params.i[2] = s.vd, c.params.i[3] = s.distances,
    c.params.i[4] = s.added;
    c.inputs.push_back(floats(Shape(DType::F32, {s.hd, s.heads, s.rows}), n, s.queries));
    for (int width : {s.hd, vd}) c.inputs.push_back(cache_rows(s, width, n));
    if (s.not_finite) put_not_finite(cache, s.kv_heads, c.inputs[1], c.inputs[2]);
    const int step = s.both_sides ? 31 : 3;
    add_places(c, s.positions, pages, s.sequences, step);
    std::vector<int32_t> seen;
    for (int r = 0; r < s.rows; r++) {
      const int at = case_position(s.positions, step, r);
      seen.push_back(s.window ? std::max(0, at - s.window) : 0);
      seen.push_back(s.window ? std::min(s.positions - 1, at + s.window) : s.positions - 1);
    }
    if (s.both_sides) c.inputs.push_back(integers(Shape(DType::I32, {2, s.rows}), seen));
    if (s.added) c.inputs.push_back(hidden_scores(pages * kPagePositions, s.rows, n));
    if (s.sinks) c.inputs.push_back(floats(Shape(DType::F32, {s.heads}), n, 2));
    if (s.distances) c.inputs.push_back(floats(Shape(DType::F32, {(2 * s.distances + 1) * s.heads}), n, 2));
    all.push_back(std::move(c));
  }
  return all;
}

void add_places(Case& c, int positions, int pages, int sequences, int step) {
  std::vector<int32_t> position, sequence, table(size_t(pages), 0);  // sequence 0 is unused
  for (int r = 0; r < c.rows; r++)
    position.push_back(case_position(positions, step, r)), sequence.push_back(1 + r % sequences);
  for (int q = 0; q < sequences; q++)  // pages out of order and interleaved
    for (int i = 0; i < pages; i++) table.push_back((i + 1) % pages * sequences + q);
  c.inputs.push_back(integers(Shape(DType::I32, {c.rows}), position));
  c.inputs.push_back(integers(Shape(DType::I32, {c.rows}), sequence));
  c.inputs.push_back(integers(Shape(DType::I32, {pages, 1 + sequences}), table));
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
               {"pages", Role::Pages},
               {"seen or added", Role::Rows},
               {"sinks or biases", Role::Weight}},
    .floats = {"scale", "cap", "alibi"},
    .integers = {"", "window", "value width", "distances", "added"},
    .product = true,
    .shape = [](const ShapeCall& c) -> Result<Shape> {
      const Shape &q = c.in[0], &keys = c.in[1], &values = c.in[2];
      if (q.dim[0] > kMaxHeadDim || values.dim[0] > kMaxHeadDim)
        return c.refuse("a head may have at most 1024 values");
      if (!is_f32(q) || q.rank != 3) return c.refuse("q must be f32[hd, heads, rows]");
      if (!is_cache(keys) || !is_cache(values) || keys.type != values.type || keys.dim[1] != values.dim[1] ||
          keys.dim[3] != values.dim[3])
        return c.refuse("keys and values must be caches of the same format, heads and pages");
      if (keys.dim[0] != q.dim[0] || q.dim[1] % keys.dim[1])
        return c.refuse("q's heads must be as long as the keys' and a multiple of the cache's");
      if (c.params.i[2] != (values.dim[0] == q.dim[0] ? 0 : values.dim[0]))
        return c.refuse("the width of the values must be a parameter if it differs from the keys'");
      if (!is_place_in_caches(c.in[3], c.in[4], c.in[5], q.dim[2])) return c.refuse(kPlaceRule);
      if (c.params.i[4]) {
        if (c.params.i[4] != 1 || c.in.size() != 7 || !is_f32_rows(c.in[6]) ||
            c.in[6].dim[0] % kPagePositions || c.in[6].dim[1] != q.dim[2])
          return c.refuse(
              "the added numbers must be f32[n, rows], n a multiple of 64, without sinks or biases");
      } else if (c.in.size() > 6 && (c.in[6] != Shape(DType::I32, {2, q.dim[2]}) || c.params.i[1]))
        return c.refuse("the visible ranges must be i32[2, rows], without a window");
      const int64_t distances = c.params.i[3];
      if (distances < 0 || distances > kMaxDistances)
        return c.refuse("the distances with a bias must be 0 to 1024");
      if (distances > 0 &&
          (c.in.size() < 8 || c.in[7] != Shape(DType::F32, {(2 * distances + 1) * q.dim[1]})))
        return c.refuse("biases must be f32, for each head of q one of each distance to both sides");
      if (distances == 0 && c.in.size() > 7 && c.in[7] != Shape(DType::F32, {q.dim[1]}))
        return c.refuse("sinks must be f32, one per head of q");
      return Shape(DType::F32, {values.dim[0], q.dim[1], q.dim[2]});
    },
    // Every row reads all keys and values before it; heads that share a KV head read them once.
    .cost =
        [](Cost& c, std::span<const Shape> in, const Shape&, int64_t context) {
          const auto kv = double(row_bytes(in[1].type, in[1].dim[0]) + row_bytes(in[2].type, in[2].dim[0]));
          c.bytes_read = double(in[0].bytes()) + kv * double(in[1].dim[1] * context) * double(in[0].dim[2]);
          c.operations = 2.0 * double((in[0].dim[0] + in[2].dim[0]) * in[0].dim[1] * in[0].dim[2] * context);
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
