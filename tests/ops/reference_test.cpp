// The judge is judged: every op of the reference against values worked out by hand or by a second, separate
// computation here.
#include "support/reference.h"

#include <cstring>

#include "tensor/activations.h"

namespace gimbal::reference {
namespace {

TEST(Reference, Embed) {
  Tensor table = floats({2, 3}, {1, 2, 3, -4, 5, 6}), tokens = ints({3}, {2, 1, 0});
  Ran r = run_op(OpKind::Embed, {}, {&table, &tokens}, Shape(DType::F32, {2, 3}), 2);
  near(r.out.values, {5, 6, 3, -4, kOld, kOld});
  near(r.magnitude, {5, 6, 3, 4, 0, 0});
}

// Worked out by hand: zeros and NaNs are equal among themselves, and equal values stay as they stood.
TEST(Reference, SortsAndTakesTheFirst) {
  const double nan = NAN, inf = INFINITY;
  Tensor x = floats({7, 2}, {3, nan, -0.0, 0.0, nan, -inf, 3, 9, 9, 9, 9, 9, 9, 9});
  OpParams p;
  Ran rising = run_op(OpKind::ArgSort, p, {&x}, Shape(DType::I32, {7, 2}), 1);
  near(rising.out.values, {5, 2, 3, 0, 6, 1, 4, kOld, kOld, kOld, kOld, kOld, kOld, kOld});
  p.i[0] = 1;
  Ran falling = run_op(OpKind::ArgSort, p, {&x}, Shape(DType::I32, {7, 2}), 2);
  near(falling.out.values, {1, 4, 0, 6, 2, 3, 5, 0, 1, 2, 3, 4, 5, 6});
  const std::vector<double> sorted = run_op(OpKind::Sort, p, {&x}, x.shape, 1).out.values;
  EXPECT_TRUE(std::isnan(sorted[0]) && std::isnan(sorted[1]));
  near({sorted.begin() + 2, sorted.begin() + 6}, {3, 3, 0, 0});
  EXPECT_TRUE(std::signbit(sorted[4]) && !std::signbit(sorted[5]) && sorted[6] == -inf);

  Tensor few = floats({3, 2}, {1, 5, 5, -1, -2, -3});
  p.i[0] = 2;
  near(run_op(OpKind::TopK, p, {&few}, Shape(DType::F32, {4, 2}), 2).out.values, {5, 5, 1, 2, -1, -2, 0, 1});
  p.i[0] = 5;  // more than there are
  const std::vector<double> all = run_op(OpKind::TopK, p, {&few}, Shape(DType::F32, {10, 2}), 1).out.values;
  near({all.begin(), all.begin() + 3}, {5, 5, 1});
  near({all.begin() + 5, all.begin() + 10}, {1, 2, 0, -1, -1});
  EXPECT_EQ(all[3], -inf);
  EXPECT_EQ(all[4], -inf);
}

TEST(Reference, SelectRows) {
  Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6}), rows = ints({2}, {2, 0});
  Ran r = run_op(OpKind::SelectRows, {}, {&x, &rows}, Shape(DType::F32, {2, 2}), 1);
  near(r.out.values, {5, 6, kOld, kOld});
  near(r.magnitude, {0, 0, 0, 0});
}

TEST(Reference, AddAndSwiGlu) {
  Tensor a = floats({2, 2}, {1, -2, 0, 9}), b = floats({2, 2}, {3, 4, 5, 9});
  Ran add = run_op(OpKind::Add, {}, {&a, &b}, a.shape, 1);
  near(add.out.values, {4, 2, kOld, kOld});
  near(add.magnitude, {4, 6, 0, 0});
  Ran glu = run_op(OpKind::SwiGlu, {}, {&a, &b}, a.shape, 2);
  // x * sigmoid(x) with sigmoid(x) = (1 + tanh(x/2)) / 2
  auto silu = [](double x) { return x * (1 + std::tanh(x / 2)) / 2; };
  near(glu.out.values, {silu(1) * 3, silu(-2) * 4, 0, silu(9) * 9});
}

// gelu as Hendrycks and Gimpel approximate it; their table: gelu(1) = 0.8412, gelu(-1) = -0.1588, gelu(3)
// = 2.9964.
TEST(Reference, GeluGlu) {
  Tensor gate = floats({3, 2}, {1, -1, 3, 9, 9, 9}), up = floats({3, 2}, {1, 2, -1, 9, 9, 9});
  Ran glu = run_op(OpKind::GeluGlu, {}, {&gate, &up}, gate.shape, 1);
  near(glu.out.values, {0.8412, -0.3176, -2.9964, kOld, kOld, kOld}, 1e-4);
}

// Values of tables of the functions.
TEST(Reference, FunctionsOfOneValue) {
  auto of = [](OpKind kind, std::vector<double> x, double f = 0) {
    Tensor t = floats({int64_t(x.size()), 1}, x);
    OpParams p;
    p.f[0] = f;
    return run_op(kind, p, {&t}, t.shape, 1).out.values;
  };
  near(of(OpKind::Silu, {1, 0, -2}), {0.731058578630, 0, -0.238405844044}, 1e-11);
  near(of(OpKind::Gelu, {1, -1}), {0.841191990608, -0.158808009392}, 1e-11);
  near(of(OpKind::GeluErf, {1, -1, -2}), {0.841344746069, -0.158655253931, -0.0455002638964}, 1e-11);
  near(of(OpKind::SquaredRelu, {3, -3}), {9, 0});
  near(of(OpKind::Relu, {3, -3}), {3, 0});
  near(of(OpKind::Exp, {0, 1, -2}), {1, 2.718281828459, 0.135335283237}, 1e-11);
  near(of(OpKind::Sigmoid, {0, 2}), {0.5, 0.880797077978}, 1e-11);
  near(of(OpKind::Softplus, {0, -3, 30}), {0.693147180560, 0.0485873515737, 30}, 1e-11);
  near(of(OpKind::SoftCap, {2, -1, 100}, 2), {1.52318831191, -0.924234314520, 2}, 1e-11);
  near(of(OpKind::Clamp, {2, -3, 0.25}, 0.5), {0.5, -0.5, 0.25});
}

TEST(Reference, ProductsOfTwoValues) {
  Tensor a = floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), b = floats({1, 2, 2}, {10, -1, 2, 9});
  near(run_op(OpKind::Mul, {}, {&a, &a}, a.shape, 1).out.values, {1, 4, 9, 16, kOld, kOld, kOld, kOld});
  near(run_op(OpKind::Mul, {}, {&a, &b}, a.shape, 2).out.values, {10, 20, -3, -4, 10, 12, 63, 72});
  // sigmoid(0) is a half; beyond the limit the gate is 7, and up is -7 or 7.
  Tensor gate = floats({3, 1}, {0.5, 50, 1e-9}), up = floats({3, 1}, {2, -50, 50});
  OpParams p;
  p.f[0] = 7;
  const double s = 1 / (1 + std::exp(-0.851)), t = 1 / (1 + std::exp(-11.914));
  near(run_op(OpKind::ClampedSwiGlu, p, {&gate, &up}, gate.shape, 1).out.values, {1.5 * s, -42 * t, 4e-9},
       1e-11);
}

// A factor of 0 leaves the row as it is, even where the other has no number; also the sign of a zero.
TEST(Reference, SumsWithAFactorForEachRow) {
  Tensor a = floats({2, 2, 3}, {1, 2, 3, 4, -0.0, 6, 7, 8, 9, 10, 11, 12}),
         b = floats({2, 2, 3}, {10, 20, 30, 40, NAN, INFINITY, -1, 1, 1, 1, 1, 1}),
         s = floats({1, 3}, {0.5, 0, 2});
  const std::vector<double> y = run_op(OpKind::AddScaled, {}, {&a, &b, &s}, a.shape, 2).out.values;
  near(y, {6, 12, 18, 24, 0, 6, 7, 8, kOld, kOld, kOld, kOld});
  EXPECT_TRUE(std::signbit(y[4]));
}

TEST(Reference, NormsByHand) {
  Tensor x = floats({2, 2, 1}, {1, 3, -3, 4}), w = floats({2}, {2, 10}), b = floats({2}, {100, 200}),
         each = floats({4}, {1, 2, 3, 4});
  auto of = [&](NormKind kind, std::vector<const Tensor*> in, double epsilon) {
    OpParams p;
    p.f[0] = epsilon, p.i[0] = int64_t(kind);
    return run_op(OpKind::Norm, p, in, x.shape, 1).out.values;
  };
  near(of(NormKind::Layer, {&x, &w, &b}, 0), {98, 210, 98, 210});
  near(of(NormKind::Layer, {&x}, 3), {-0.5, 0.5, -3.5 / std::sqrt(15.25), 3.5 / std::sqrt(15.25)});
  near(of(NormKind::Rms, {&x, &w}, 4), {2 / 3., 10, -6 / std::sqrt(16.5), 40 / std::sqrt(16.5)});
  near(of(NormKind::Length, {&x, &each}, 6), {0.25, 1.5, -9 / std::sqrt(31), 16 / std::sqrt(31)});
  near(of(NormKind::None, {&x, &each}, 0), {1, 6, -9, 16});
}

TEST(Reference, PartsOfHeads) {
  Tensor x = floats({3, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), one = floats({1, 1, 2}, {-1, -2});
  OpParams p;
  p.i[0] = 1, p.i[1] = 2;
  near(run_op(OpKind::Slice, p, {&x}, Shape(DType::F32, {2, 2, 2}), 2).out.values,
       {2, 3, 5, 6, 8, 9, 11, 12});
  near(run_op(OpKind::Concat, {}, {&x, &one}, Shape(DType::F32, {4, 2, 2}), 1).out.values,
       {1, 2, 3, -1, 4, 5, 6, -1, kOld, kOld, kOld, kOld, kOld, kOld, kOld, kOld});
}

TEST(Reference, SquaredReluGluAndScale) {
  Tensor gate = floats({2, 3}, {3, -2, 0.5, 0, 9, 9}), up = floats({2, 3}, {-2, 5, 8, 7, 9, 9});
  Ran glu = run_op(OpKind::SquaredReluGlu, {}, {&gate, &up}, gate.shape, 2);
  near(glu.out.values, {-18, 0, 2, 0, kOld, kOld});
  near(glu.magnitude, {18, 0, 2, 0, 0, 0});
  gate.values[1] = NAN;
  EXPECT_TRUE(std::isnan(run_op(OpKind::SquaredReluGlu, {}, {&gate, &up}, gate.shape, 1).out.values[1]));
  OpParams p;
  p.f[0] = -0.25f;
  Ran scaled = run_op(OpKind::Scale, p, {&up}, up.shape, 1);
  near(scaled.out.values, {0.5, -1.25, kOld, kOld, kOld, kOld});
  near(scaled.magnitude, {0.5, 1.25, 0, 0, 0, 0});
}

TEST(Reference, RmsNorm) {
  OpParams p;
  p.f[0] = 0.25f;
  Tensor x = floats({2, 2, 1}, {3, 4, 0, 0}), w = floats({2}, {1, -2});
  Ran r = run_op(OpKind::RmsNorm, p, {&x, &w}, x.shape, 1);
  const double rms = std::sqrt((9 + 16) / 2.0 + 0.25);
  near(r.out.values, {3 / rms, -8 / rms, 0, 0});
  near(r.magnitude, {3 / rms, 8 / rms, 0, 0});
}

TEST(Reference, MatMulWithAndWithoutBias) {
  Tensor w = floats({3, 2}, {1, 2, 3, -1, 0, 1}), x = floats({3, 3}, {1, 1, 1, 2, -1, 0, 9, 9, 9});
  Tensor bias = floats({2}, {10, -20});
  Ran plain = run_op(OpKind::MatMul, {}, {&w, &x}, Shape(DType::F32, {2, 3}), 2);
  near(plain.out.values, {6, 0, 0, -2, kOld, kOld});
  near(plain.magnitude, {6, 2, 4, 2, 0, 0});
  Ran biased = run_op(OpKind::MatMul, {}, {&w, &x, &bias}, Shape(DType::F32, {2, 3}), 1);
  near(biased.out.values, {16, -20, kOld, kOld, kOld, kOld});
  near(biased.magnitude, {16, 22, 0, 0, 0, 0});
}

// By the recursion: the matrix of 2n rows is {{H, H}, {H, -H}} of that of n rows.
TEST(Reference, HadamardOfFourValuesAndOfTwo) {
  Tensor x = floats({4, 1, 2}, {1, 2, 3, 5, -1, 0, 0, 0});
  OpParams p;
  p.i[0] = 4;
  near(run_op(OpKind::Hadamard, p, {&x}, x.shape, 2).out.values,
       {5.5, -1.5, -2.5, 0.5, -0.5, -0.5, -0.5, -0.5});
  p.i[0] = 2;
  const double root = std::sqrt(0.5);
  near(run_op(OpKind::Hadamard, p, {&x}, x.shape, 1).out.values,
       {3 * root, -root, 8 * root, -2 * root, kOld, kOld, kOld, kOld});
}

TEST(Reference, RopeIsAMultiplicationOfComplexNumbers) {
  const int hd = 6, heads = 2, rows = 3, rotated = 4;
  Tensor x = floats({hd, heads, rows}, wave(hd * heads * rows, 0.7)),
         table = floats({rotated, rows}, wave(12, 1.1));
  for (auto [pairs, first] : {std::pair{RopePairs::Adjacent, 0},
                              {RopePairs::Halves, 0},
                              {RopePairs::Halves, 2},
                              {RopePairs::Adjacent, 1}}) {
    OpParams p;
    p.i[0] = int32_t(pairs), p.i[1] = first;
    Ran r = run_op(OpKind::Rope, p, {&x, &table}, x.shape, 2);
    for (int row = 0; row < rows; row++)
      for (int h = 0; h < heads; h++)
        for (int d = 0; d < hd; d++) {
          const size_t head = size_t((row * heads + h) * hd);
          double want = kOld;
          const int place = d - first;
          if (row < 2) want = x.values[head + size_t(d)];
          if (row < 2 && place >= 0 && place < rotated) {
            const int pair = pairs == RopePairs::Adjacent ? place / 2 : place % 2;  // rotated / 2 = 2 pairs
            const int re = pairs == RopePairs::Adjacent ? 2 * pair : pair;
            const int im = pairs == RopePairs::Adjacent ? 2 * pair + 1 : pair + 2;
            const double *t = &table.values[size_t(row * rotated + 2 * pair)],
                         *v = &x.values[head + size_t(first)];
            want = place == re ? v[re] * t[0] - v[im] * t[1] : v[re] * t[1] + v[im] * t[0];
          }
          EXPECT_NEAR(r.out.values[head + size_t(d)], want, 1e-14) << row << " " << h << " " << d;
        }
  }
}

// Two sequences whose pages are interleaved and out of order.
struct Cached {
  static constexpr int hd = 4, kv = 2, heads = 4, pages = 4, length = 70;
  Tensor keys, values, table = ints({2, 2}, {3, 0, 1, 2});
  std::vector<double> k, v;  // of sequence 1, [position][kv][hd]
  Cached() {
    k = wave(size_t(length) * kv * hd, 0.37), v = wave(size_t(length) * kv * hd, 0.91);
    const Shape s(DType::F32, {hd, kv, kPagePositions, pages});
    keys = values = {s, std::vector<double>(size_t(s.count()), kOld)};
    std::vector<double> at(length), which(length, 1);
    for (int i = 0; i < length; i++) at[size_t(i)] = i;
    Tensor position = ints({length}, at), sequence = ints({length}, which);
    for (auto [cache, x] : {std::pair{&keys, &k}, {&values, &v}}) {
      Tensor rows = floats({hd, kv, length}, *x), before = *cache;
      run(OpKind::CacheWrite, {}, std::vector<const Tensor*>{&before, &rows, &position, &sequence, &table},
          *cache, length);
    }
  }
};

TEST(Reference, CacheWritePutsEachPositionInItsPage) {
  Cached c;
  size_t written = 0;
  for (double x : c.keys.values) written += x != kOld;
  EXPECT_EQ(written, c.k.size()) << "everything else keeps what it was";
  // Sequence 1 has page 1 for positions 0..63 and page 2 for 64...
  auto at = [&](int page, int slot, int head, int d) {
    return c.keys.values[size_t(((page * kPagePositions + slot) * Cached::kv + head) * Cached::hd + d)];
  };
  EXPECT_EQ(at(1, 0, 0, 0), c.k[0]);
  EXPECT_EQ(at(1, 63, 1, 3), c.k[(63 * 2 + 1) * 4 + 3]);
  EXPECT_EQ(at(2, 5, 1, 2), c.k[(69 * 2 + 1) * 4 + 2]);
}

// Once more from the formats' definitions, in double where they are not about f32: one head of one block.
std::vector<double> written(DType type, const std::vector<double>& x) {
  Tensor cache{Shape(type, {32, 1, kPagePositions, 1}), std::vector<double>(32 * kPagePositions, kOld)};
  Tensor rows = floats({32, 1, 1}, x), zero = ints({1}, {0}), table = ints({1, 1}, {0}), before = cache;
  run(OpKind::CacheWrite, {}, std::vector<const Tensor*>{&before, &rows, &zero, &zero, &table}, cache, 1);
  for (size_t i = 32; i < cache.values.size(); i++) EXPECT_EQ(cache.values[i], kOld);
  return {cache.values.begin(), cache.values.begin() + 32};
}

double as_half(double x) {  // to 11 bits, or to a multiple of the smallest half
  if (x == 0) return 0;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(x) - 10, -24));
  return std::nearbyint(x / unit) * unit;
}

TEST(Reference, CacheWriteRoundsToTheBlocksOfTheFormat) {
  for (double size : {1.0, 3e-6, 1e-9, 7000.0})
    for (DType type : {DType::Q8_0, DType::Q4_0}) {
      auto x = wave(32, 0.77);
      for (double& v : x) v = float(v * size);
      x[5] = 0, x[9] = -x[10];
      double extreme = 0;
      for (double v : x)
        if (std::fabs(v) > std::fabs(extreme)) extreme = v;
      const bool eight = type == DType::Q8_0;
      const float step = eight ? std::fabs(float(extreme)) / 127.f : float(extreme) / -8.f;
      const float per_step = 1.f / step;
      const double stored = as_half(step);
      const auto got = written(type, x);
      for (size_t i = 0; i < 32; i++) {
        const double t = float(float(x[i]) * per_step);
        const double code = eight ? std::copysign(std::floor(std::fabs(t) + 0.5), t)
                                  : std::min(15.0, std::floor(double(float(t + 8.5)))) - 8;
        EXPECT_EQ(got[i], code * stored + 0.0) << info(type).name << " " << size << " value " << i;
        // Half a step; q4_0 lacks the code for the extreme's opposite. The rest is the rounding of the step.
        const double most = (eight ? 0.5 : 1) * std::fabs(step) * (1 + 1e-5) + 127 * std::fabs(step - stored);
        EXPECT_LE(std::fabs(got[i] - x[i]), most) << info(type).name << " " << size << " value " << i;
      }
    }
}

TEST(Reference, CacheWriteByHand) {
  std::vector<double> x(32, 0);
  x[0] = 127, x[1] = 63.5, x[2] = -63.5, x[3] = 0.49, x[4] = -0.5, x[31] = -126.6;
  auto q8 = written(DType::Q8_0, x);  // step 1, ties away from zero
  EXPECT_EQ((std::vector<double>{q8[0], q8[1], q8[2], q8[3], q8[4], q8[31]}),
            (std::vector<double>{127, 64, -64, 0, -1, -127}));
  x[0] = -16, x[1] = 16, x[2] = 3, x[3] = -3, x[4] = 0.99, x[31] = 14;
  auto q4 = written(DType::Q4_0, x);  // step 2: codes 0 to 15 stand for -16 to 14, ties up
  EXPECT_EQ((std::vector<double>{q4[0], q4[1], q4[2], q4[3], q4[4], q4[31]}),
            (std::vector<double>{-16, 14, 4, -2, 0, 14}));
  for (double odd : {double(NAN), double(INFINITY), -double(INFINITY)})
    for (DType type : {DType::Q8_0, DType::Q4_0}) {
      x[7] = odd;
      for (double v : written(type, x)) EXPECT_TRUE(std::isnan(v)) << "what is not a number stays visible";
    }
}

TEST(Reference, CacheWriteRoundsHalvesToNearestEven) {
  std::vector<double> x(32, 1);
  x[0] = 1 + 0x1p-11, x[1] = 1 + 3 * 0x1p-11, x[2] = 65519, x[3] = 0x1p-25, x[4] = 0x1.8p-25;
  auto first = [](std::vector<double> v, size_t n) { return v.resize(n), v; };
  EXPECT_EQ(first(written(DType::F16, x), 5), (std::vector<double>{1, 1 + 0x1p-9, 65504, 0, 0x1p-24}));
  x[0] = 1 + 0x1p-8, x[1] = 1 + 3 * 0x1p-8;
  EXPECT_EQ(first(written(DType::BF16, x), 2), (std::vector<double>{1, 1 + 0x1p-6}));
  EXPECT_EQ(written(DType::F32, x), x);
}

TEST(Reference, AttentionIsSoftmaxOverThePastInsideTheWindow) {
  Cached c;
  const int rows = 2;
  Tensor q = floats({Cached::hd, Cached::heads, rows}, wave(size_t(Cached::hd * Cached::heads * rows), 1.3));
  Tensor position = ints({rows}, {69, 2}), sequence = ints({rows}, {1, 1});
  for (int window : {0, 1, 10}) {
    OpParams p;
    p.f[0] = 0.5f, p.i[1] = window;
    Ran r =
        run_op(OpKind::Attention, p, {&q, &c.keys, &c.values, &position, &sequence, &c.table}, q.shape, rows);
    for (int row = 0; row < rows; row++)
      for (int h = 0; h < Cached::heads; h++) {
        const int pos = row ? 2 : 69, first = window ? std::max(0, pos + 1 - window) : 0, kv = h / 2;
        const double* query = &q.values[size_t((row * Cached::heads + h) * Cached::hd)];
        // Plain softmax, without taking the maximum off first: the scores are small.
        double total = 0, sum[Cached::hd] = {};
        for (int j = first; j <= pos; j++) {
          double score = 0;
          for (int d = 0; d < Cached::hd; d++) score += query[d] * c.k[size_t((j * 2 + kv) * 4 + d)];
          const double weight = std::exp(0.5 * score);
          total += weight;
          for (int d = 0; d < Cached::hd; d++) sum[d] += weight * c.v[size_t((j * 2 + kv) * 4 + d)];
        }
        for (int d = 0; d < Cached::hd; d++) {
          const size_t i = size_t((row * Cached::heads + h) * Cached::hd + d);
          EXPECT_NEAR(r.out.values[i], sum[d] / total, 1e-12) << window << " " << row << " " << h << " " << d;
          EXPECT_GE(r.magnitude[i], std::fabs(r.out.values[i]) * (1 - 1e-12));
        }
      }
  }
}

// Keys of one value make the scores 0, 1 and 2; values are of two: where the key is, and 1.
TEST(Reference, AttentionsOptions) {
  const int heads = 3;
  Tensor q = floats({1, heads, 1}, {1, 1, 1}), keys = floats({1, 1, 64, 1}, std::vector<double>(64)),
         values = floats({2, 1, 64, 1}, std::vector<double>(128, 1)), position = ints({1}, {1}),
         sequence = ints({1}, {0}), pages = ints({1, 1}, {0}), seen = ints({2, 1}, {1, 2}),
         sinks = floats({heads}, {0.5, 1, 2});
  for (size_t j = 0; j < 3; j++) keys.values[j] = double(j), values.values[2 * j] = double(j);
  auto of = [&](std::vector<const Tensor*> more, double cap, double alibi, int distances = 0) {
    OpParams p;
    p.f[0] = 1, p.f[1] = cap, p.f[2] = alibi, p.i[2] = 2, p.i[3] = distances;
    std::vector<const Tensor*> in = {&q, &keys, &values, &position, &sequence, &pages};
    in.insert(in.end(), more.begin(), more.end());
    return run_op(OpKind::Attention, p, in, Shape(DType::F32, {2, heads, 1}), 1).out.values;
  };
  const double e = std::exp(1.0), e2 = e * e;
  near(of({}, 0, 0), {e / (1 + e), 1, e / (1 + e), 1, e / (1 + e), 1});
  const double capped = std::exp(1.5 * std::tanh(1 / 1.5));
  near(of({}, 1.5, 0), {capped / (1 + capped), 1, capped / (1 + capped), 1, capped / (1 + capped), 1});
  // Slopes of three heads with 8: 2^-4, 2^-8, and, between them, 2^-2.
  std::vector<double> want;
  for (double slope : {1. / 16, 1. / 256, 1. / 4}) want.insert(want.end(), {e / (std::exp(-slope) + e), 1});
  near(of({}, 0, 8), want);
  near(of({&seen}, 0, 0),
       {(e + 2 * e2) / (e + e2), 1, (e + 2 * e2) / (e + e2), 1, (e + 2 * e2) / (e + e2), 1});
  want.clear();
  for (double sink : {0.5, 1., 2.}) {
    const double total = e + e2 + std::exp(sink);
    want.insert(want.end(), {(e + 2 * e2) / total, (e + e2) / total});
  }
  near(of({&seen, &sinks}, 0, 0), want);
  // ALiBi counts positions to both sides of the row's own, which is 1.
  want.clear();
  for (double slope : {1. / 16, 1. / 256, 1. / 4}) {
    const double after = std::exp(2 - slope);
    want.insert(want.end(), {(e + 2 * after) / (e + after), 1});
  }
  near(of({&seen}, 0, 8), want);
  // Of positions 0 and 1, the second is hidden, or gets 1 more.
  OpParams by_position;
  by_position.f[0] = 1, by_position.i[2] = 2, by_position.i[4] = 1;
  for (const auto& [number, mean] : {std::pair(double(kHidden), 0.), {1., e2 / (1 + e2)}}) {
    Tensor added = floats({64, 1}, std::vector<double>(64));
    added.values[1] = number;
    near(run_op(OpKind::Attention, by_position, {&q, &keys, &values, &position, &sequence, &pages, &added},
                Shape(DType::F32, {2, heads, 1}), 1)
             .out.values,
         {mean, 1, mean, 1, mean, 1});
  }
  // Biases of the distances -1, 0 and 1 of each head; a key that is further away has the last one's.
  Tensor all = ints({2, 1}, {0, 3}), biases = floats({9}, {5, 1, 2, 0, 0, 0, -1, 3, 0.5});
  keys.values[3] = 1, values.values[6] = 3;
  want.clear();
  for (size_t h = 0; h < 3; h++) {
    const double b[] = {biases.values[3 * h], biases.values[3 * h + 1], biases.values[3 * h + 2]},
                 w[] = {std::exp(b[0]), std::exp(1 + b[1]), std::exp(2 + b[2]), std::exp(1 + b[2])},
                 total = w[0] + w[1] + w[2] + w[3];
    want.insert(want.end(), {(w[1] + 2 * w[2] + 3 * w[3]) / total, 1});
  }
  near(of({&all, &biases}, 0, 0, 1), want);
}

TEST(Reference, ActivationsDecodeToCodeTimesScale) {
  std::vector<unsigned char> block(40 + 292);
  const float scale = 0.5f;
  int32_t sum = 0;
  std::memcpy(&block[0], &scale, 4);
  for (int i = 0; i < 32; i++) block[size_t(8 + i)] = uint8_t(int8_t(i * 8 - 127)), sum += i * 8 - 127;
  std::memcpy(&block[4], &sum, 4);
  Tensor small = decode(Shape(DType::A8_32, {32, 1}), block.data());
  for (int i = 0; i < 32; i++) EXPECT_EQ(small.values[size_t(i)], 0.5 * (i * 8 - 127));
  sum++;
  std::memcpy(&block[4], &sum, 4);
  EXPECT_TRUE(std::isnan(decode(Shape(DType::A8_32, {32, 1}), block.data()).values[0]))
      << "a wrong sum shows";

  unsigned char* large = &block[40];
  std::memcpy(large, &scale, 4);
  for (int i = 0; i < 256; i++) large[4 + i] = uint8_t(int8_t(i - 128));
  for (int g = 0; g < 16; g++) {
    auto s = int16_t(16 * (16 * g - 128) + 120);
    std::memcpy(large + 260 + 2 * g, &s, 2);
  }
  Tensor t = decode(Shape(DType::A8_256, {256, 1}), large);
  for (int i = 0; i < 256; i++) EXPECT_EQ(t.values[size_t(i)], 0.5 * (i - 128));
  large[260 + 2 * 7] ^= 1;
  t = decode(Shape(DType::A8_256, {256, 1}), large);
  for (int i = 0; i < 256; i++) EXPECT_EQ(std::isnan(t.values[size_t(i)]), i / 16 == 7) << i;
}

TEST(Reference, ARowWithOneScaleDecodesByThatOfItsFirstBlock) {
  const Activations a = activations_of(DType::A8_ROW);
  std::vector<uint8_t> two_rows(size_t(4 * a.bytes));
  const int8_t codes[64] = {3, -5};
  for (int b = 0; b < 4; b++) put_activations(a, float(b + 1), codes, &two_rows[size_t(b * a.bytes)]);
  const Tensor t = decode(Shape(DType::A8_ROW, {128, 2}), two_rows.data());
  for (size_t i : {0u, 64u}) EXPECT_EQ(t.values[i], 3) << i;
  for (size_t i : {128u, 192u}) EXPECT_EQ(t.values[i], 9) << i;
  EXPECT_EQ(t.values[65], -5);
}

TEST(Reference, QuantizeMayErrByHalfAStepOfItsRow) {
  Tensor x = floats({128, 2}, wave(256, 0.2));
  x.values[5] = -12.7;
  OpParams p;
  p.i[0] = int32_t(DType::A8_ROW);
  Ran r = run_op(OpKind::Quantize, p, {&x}, Shape(DType::A8_ROW, {128, 2}), 1);
  for (size_t i = 0; i < 128; i++) EXPECT_DOUBLE_EQ(r.magnitude[i], 12.7 / 254) << i;
}

TEST(Reference, QuantizeMayErrByHalfAStepOfItsBlock) {
  Tensor x = floats({32, 2}, wave(64, 0.2));
  x.values[5] = -12.7;
  OpParams p;
  p.i[0] = int32_t(DType::A8_32);
  Ran r = run_op(OpKind::Quantize, p, {&x}, Shape(DType::A8_32, {32, 2}), 1);
  for (size_t i = 0; i < 32; i++) {
    EXPECT_EQ(r.out.values[i], x.values[i]);
    EXPECT_DOUBLE_EQ(r.magnitude[i], 12.7 / 254);
  }
  EXPECT_EQ(r.out.values[32], kOld);
}

}  // namespace
}  // namespace gimbal::reference
