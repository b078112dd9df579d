// The maps on the CPU: every 4096th float and edges, as many doubles, against the C library in a wider type;
// the same bits on every instruction set. GIMBAL_EVERY=1 takes all 2^32 floats (functions of one input, the
// CPU's best instruction set) as well: `make exhaustive`, two minutes a function.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ops/map_judge.h"
#include "ops/map_variants.h"
#include "support/golden.h"

namespace gimbal {
namespace {

using test::judge, test::map_variants, test::MapVariant, test::MapWorst;

constexpr double kMapNumbers[2] = {0.7, -1.25};
constexpr int kMapBlock = 1024;

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <class T>
T of_bits(BitsOf<T> bits) {
  return std::bit_cast<T>(bits);
}
template <class T>
void run_map(const MapKernels* k, const T* a, const T* b, T* y, int64_t n) {
  if constexpr (sizeof(T) == 4) k->f32(a, b, kMapNumbers, y, n);
  else k->f64(a, b, kMapNumbers, y, n);
}

template <class T>
void expect_within(const MapFacts& facts, const MapWorst<T>& worst, const std::string& variant) {
  const double bound = sizeof(T) == 8 ? (facts.ulps ? 4 : 0.5) : facts.ulps ? facts.ulps : 0.5;
  EXPECT_LE(worst.error, bound) << facts.name << " of " << worst.x << ", " << worst.y << " gives "
                                << worst.got << " on " << variant;
  EXPECT_EQ(worst.wrong_nans, 0) << facts.name << " on " << variant;
}

template <class T>
std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> out = {0,
                        1,
                        2,
                        3,
                        T(0.5),
                        T(1.5),
                        T(2.5),
                        T(0.1),
                        T(1e-5),
                        7,
                        20,
                        33,
                        88,
                        89,
                        104,
                        710,
                        746,
                        65536,
                        Limits::min(),
                        Limits::denorm_min(),
                        Limits::max(),
                        Limits::epsilon(),
                        Limits::infinity(),
                        Limits::quiet_NaN(),
                        T(1) / Limits::epsilon(),
                        T(0.5) / Limits::epsilon() + T(0.5),
                        T(3.14159265358979),
                        T(0.785398163397448),
                        32768,
                        T(0x1p30)};
  for (size_t i = 0, n = out.size(); i < n; i++) {
    out.push_back(std::nextafter(out[i], Limits::infinity()));
    out.push_back(std::nextafter(out[i], T(0)));
  }
  for (size_t i = 0, n = out.size(); i < n; i++) out.push_back(-out[i]);
  out.push_back(of_bits<T>(BitsOf<T>(sizeof(T) == 4 ? 0xffc12345 : 0xfff8123456789abc)));
  return out;
}

// Pairs of values: every edge with every edge for two inputs, then numbers of all sizes.
template <class T>
struct MapInputs {
  std::vector<T> a, b;
};
template <class T>
MapInputs<T> inputs_of(const MapFacts& facts, uint32_t step) {
  MapInputs<T> in;
  const std::vector<T> ends = edges<T>();
  for (T x : ends)
    for (T y : ends) {
      in.a.push_back(x), in.b.push_back(y);
      if (facts.inputs == 1) break;
    }
  std::mt19937_64 random(12345);
  std::uniform_real_distribution<double> unit(-1, 1);
  for (uint64_t at = 0; at < (uint64_t(1) << 32); at += step) {
    // For doubles: the same signs, exponents and first digits, and random other digits.
    T x;
    if constexpr (sizeof(T) == 4) x = of_bits<T>(uint32_t(at));
    else x = of_bits<T>(at << 32 | (random() & 0xffffffff));
    T y = of_bits<T>(BitsOf<T>(random()));
    const uint64_t kind = random() % 4;
    if (facts.function == MapFunction::Pow && kind) {  // results that are neither 0 nor infinite
      const double size = std::log2(std::abs(double(x)));
      y = kind == 1 ? T(std::round(20 * unit(random)))
                    : T(1.1 * std::numeric_limits<T>::max_exponent * unit(random) / size);
    } else if (kind == 1) {
      y = x;
    } else if (kind == 2) {
      y = x * T(unit(random));
    }
    in.a.push_back(x), in.b.push_back(y);
  }
  return in;
}

template <class T>
void test_function(const MapFacts& facts, uint32_t step) {
  const MapInputs<T> in = inputs_of<T>(facts, step);
  std::vector<T> first;
  for (const MapVariant& v : map_variants()) {
    const MapKernels* kernels = v.kernels(int(facts.function));
    ASSERT_TRUE(kernels) << facts.name;
    std::vector<T> got(in.a.size());
    for (size_t i = 0; i < got.size(); i += kMapBlock)
      run_map(kernels, &in.a[i], &in.b[i], &got[i], int64_t(std::min<size_t>(kMapBlock, got.size() - i)));
    if (first.empty()) {
      MapWorst<T> worst;
      judge(facts, in.a.data(), in.b.data(), got.data(), got.size(), kMapNumbers, worst);
      expect_within(facts, worst, v.name);
      first = got;
      continue;
    }
    for (size_t i = 0; i < got.size(); i++)
      ASSERT_EQ(std::bit_cast<BitsOf<T>>(got[i]), std::bit_cast<BitsOf<T>>(first[i]))
          << facts.name << " of " << in.a[i] << ", " << in.b[i] << " differs on " << v.name;
  }
}

class Maps : public testing::TestWithParam<MapFacts> {};
std::vector<MapFacts> maps_of_floats() {
  std::vector<MapFacts> out;
  for (const MapFacts& f : kMaps)
    if (f.classes & kMapF) out.push_back(f);
  return out;
}

TEST_P(Maps, OfFloatsAreWithinTheirBoundsAndTheSameOnEveryInstructionSet) {
  test_function<float>(GetParam(), test::fewer_cases() ? 65551 : 4099);
}
TEST_P(Maps, OfDoublesAreWithinTheirBoundsAndTheSameOnEveryInstructionSet) {
  test_function<double>(GetParam(), test::fewer_cases() ? 262147 : 16411);
}

// Any number of values, and results over one of the inputs.
TEST_P(Maps, WriteWhatTheyShouldAndNoMore) {
  float a[64], b[64], want[64];
  for (int i = 0; i < 64; i++) a[i] = 0.03f * float(i + 1), b[i] = 2 - 0.02f * float(i);
  for (const MapVariant& v : map_variants()) {
    const MapKernels* kernels = v.kernels(int(GetParam().function));
    run_map(kernels, a, b, want, 64);
    for (int n = 0; n <= 64; n++)
      for (int over = 0; over < (GetParam().inputs == 2 ? 3 : 2); over++) {
        float x[64], y[64], z[64];
        std::memcpy(x, a, sizeof x), std::memcpy(y, b, sizeof y), std::memset(z, 0, sizeof z);
        float* out = over == 0 ? z : over == 1 ? x : y;
        const float after = n < 64 ? out[n] : 0;
        run_map(kernels, x, y, out, n);
        EXPECT_EQ(std::memcmp(out, want, size_t(n) * 4), 0) << v.name << " " << n << " " << over;
        EXPECT_EQ(n < 64 ? out[n] : 0, after) << v.name << " " << n;
      }
  }
}

TEST_P(Maps, OfAllFloats) {
  const char* every = std::getenv("GIMBAL_EVERY");
  const MapFacts& facts = GetParam();
  if (!every || facts.inputs != 1) return;
  const MapVariant v = map_variants().back();
  const MapKernels* kernels = v.kernels(int(facts.function));
  MapWorst<float> worst;
  float a[kMapBlock], y[kMapBlock];
  const uint64_t step = std::stoull(every);
  for (uint64_t at = 0; at < (uint64_t(1) << 32);) {
    int n = 0;
    for (; n < kMapBlock && at < (uint64_t(1) << 32); n++, at += step) a[n] = of_bits<float>(uint32_t(at));
    run_map(kernels, a, a, y, n);
    judge(facts, a, a, y, size_t(n), kMapNumbers, worst);
  }
  expect_within(facts, worst, v.name);
  std::printf("%-10s largest error %.4f ulp, of %.9g\n", facts.name, worst.error, double(worst.x));
  std::fflush(stdout);
}
INSTANTIATE_TEST_SUITE_P(All, Maps, testing::ValuesIn(maps_of_floats()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(MapTable, HasTheClassesOfTheList) {
  for (const MapVariant& v : map_variants()) {
    for (const MapFacts& f : kMaps) {
      const MapKernels* kernels = v.kernels(int(f.function));
      ASSERT_TRUE(kernels) << f.name;
      EXPECT_EQ(kernels->f32 != nullptr, (f.classes & kMapF) != 0) << f.name;
      EXPECT_EQ(kernels->f64 != nullptr, (f.classes & kMapF) != 0) << f.name;
      EXPECT_EQ(kernels->integer != nullptr, (f.classes & kMapIB) != 0) << f.name;
      EXPECT_EQ(map_facts(f.name), map_facts(f.function));
    }
    EXPECT_FALSE(v.kernels(0));
    EXPECT_FALSE(v.kernels(9999));
  }
  EXPECT_FALSE(map_facts("no such function"));
}

// What no error bound says: signs of zeros, and values by which functions are not defined in all languages.
template <class T>
void test_special_values() {
  const T inf = INFINITY, nan = NAN, zero = 0;
  struct Case {
    MapFunction function;
    T x, y, want;
  };
  using enum MapFunction;
  const Case cases[] = {
      {FloorDiv, 7, 0, inf},
      {FloorDiv, -7, 0, -inf},
      {FloorDiv, 0, 0, nan},
      {FloorDiv, inf, 2, nan},
      {FloorDiv, -1, inf, -1},
      {FloorDiv, 1, inf, 0},
      {FloorDiv, -7, 2, -4},
      {FloorDiv, 1, T(0.1), 9},
      {Remainder, -1, inf, inf},
      {Remainder, 1, inf, 1},
      {Remainder, inf, 2, nan},
      {Remainder, 1, 0, nan},
      {Remainder, -7, 2, 1},
      {Remainder, 7, -2, -1},
      {Remainder, -6, 3, zero},
      {Remainder, 6, -3, -zero},
      {Maximum, -zero, zero, 0},
      {Maximum, zero, -zero, 0},
      {Minimum, zero, -zero, -zero},
      {Minimum, -zero, zero, -zero},
      {Maximum, nan, 1, nan},
      {Minimum, 1, nan, nan},
      {Sin, -zero, 0, -zero},
      {Tan, -zero, 0, -zero},
      {Tanh, -zero, 0, -zero},
      {Erf, -zero, 0, -zero},
      {ExpM1, -zero, 0, -zero},
      {Log1P, -zero, 0, -zero},
      {Sqrt, -zero, 0, -zero},
      {RSqrt, -zero, 0, -inf},
      {Recip, -zero, 0, -inf},
      {Log, -zero, 0, -inf},
      {Log, 1, 0, zero},
      {Round, T(-0.5), 0, -zero},
      {Round, T(2.5), 0, 2},
      {Ceil, T(-0.5), 0, -zero},
      {Trunc, T(-0.5), 0, -zero},
      {Pow, -inf, T(0.5), inf},
      {Pow, -zero, T(-0.5), inf},
      {Pow, -zero, -3, -inf},
      {Pow, -zero, 3, -zero},
      {Pow, -1, inf, 1},
      {Pow, 1, nan, 1},
      {Pow, nan, 0, 1},
      {Pow, -2, T(0.5), nan},
      {Pow, -2, 3, -8},
      {Pow, 3, 2, 9},
      {Pow, T(0.5), -inf, inf},
      {Eq, nan, nan, 0},
      {Ne, nan, nan, 1},
      {Le, nan, 1, 0},
      {Gelu, -inf, 0, -zero},
      {Silu, inf, 0, inf},
      {Relu, -zero, 0, zero},
      {Relu, nan, 0, nan},
      {IsNan, nan, 0, 1},
  };
  for (const MapVariant& v : map_variants())
    for (const Case& c : cases) {
      T got = 7;
      run_map(v.kernels(int(c.function)), &c.x, &c.y, &got, 1);
      EXPECT_TRUE(std::isnan(c.want) ? std::isnan(got)
                                     : got == c.want && std::signbit(got) == std::signbit(c.want))
          << map_facts(c.function)->name << "(" << c.x << ", " << c.y << ") is " << got << " on " << v.name
          << ", not " << c.want;
    }
}
TEST(MapSpecials, OfFloats) { test_special_values<float>(); }
TEST(MapSpecials, OfDoubles) { test_special_values<double>(); }

// Worked out by hand: what C++ leaves to the CPU.
TEST(MapIntegers, WrapAndHaveNoTraps) {
  const auto one = [](MapFunction function, int64_t a, int64_t b, int bits) {
    int64_t y = 0;
    map_variants()[0].kernels(int(function))->integer(&a, &b, nullptr, &y, 1, bits);
    return y;
  };
  using enum MapFunction;
  const int64_t least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(one(Abs, -128, 0, 8), -128);
  EXPECT_EQ(one(Neg, least, 0, 64), least);
  EXPECT_EQ(one(Neg, 1, 0, -8), 255);
  EXPECT_EQ(one(FloorDiv, least, -1, 64), least);
  EXPECT_EQ(one(FloorDiv, -128, -1, 8), -128);
  EXPECT_EQ(one(FloorDiv, -7, 2, 32), -4);
  EXPECT_EQ(one(FloorDiv, 7, 0, 32), 0);
  EXPECT_EQ(one(Remainder, least, -1, 64), 0);
  EXPECT_EQ(one(Remainder, -7, 2, 32), 1);
  EXPECT_EQ(one(Remainder, 7, -2, 32), -1);
  EXPECT_EQ(one(Remainder, 7, 0, 32), 0);
  EXPECT_EQ(one(Pow, 3, 5, 32), 243);
  EXPECT_EQ(one(Pow, -3, 3, 16), -27);
  EXPECT_EQ(one(Pow, 0, 0, 64), 1);
  EXPECT_EQ(one(Pow, 2, 63, 64), least);
  EXPECT_EQ(one(Pow, 7, 3, -8), 343 - 256);
  EXPECT_EQ(one(Pow, 3, std::numeric_limits<int64_t>::max(), 64), -6148914691236517205ll);  // 1 / 3
  EXPECT_EQ(one(Pow, -1, -3, 32), -1);
  EXPECT_EQ(one(Pow, -1, -2, 32), 1);
  EXPECT_EQ(one(Pow, 1, -9, 32), 1);
  EXPECT_EQ(one(Pow, 5, -1, 32), 0);
  EXPECT_EQ(one(Pow, 0, -1, 32), 0);
  EXPECT_EQ(one(Shl, 1, 31, 32), -2147483648ll);
  EXPECT_EQ(one(Shl, 1, 31, -32), 2147483648ll);
  EXPECT_EQ(one(Shl, 1, 64, 64), 0);
  EXPECT_EQ(one(Shr, -8, 64, 64), -1);
  EXPECT_EQ(one(Shr, 200, 9, -8), 0);
  EXPECT_EQ(one(Not, 0, 0, -8), 255);
  EXPECT_EQ(one(Not, 1, 0, -1), 0);
  EXPECT_EQ(one(Not, 0, 0, -1), 1);
  EXPECT_EQ(one(Mul, 65536, 65536, -32), 0);
}

}  // namespace
}  // namespace gimbal
