// Compares the fixed functions with the long double ones of the C library (64 bits of precision or more), and
// pins their bits: a change of one bit on any machine would change what users see.
#include "base/fixed_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace gimbal {
namespace {

static_assert(std::numeric_limits<long double>::digits >= 64, "the comparisons need more than double");

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTolerance = 2e-16;  // what the header promises

// splitmix64, so that the arguments need no library either.
struct Numbers {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  double between(double lo, double hi) { return lo + (hi - lo) * (double(next() >> 11) * 0x1p-53); }
  // A positive normal double of any exponent in lo..hi.
  double any_exponent(int lo, int hi) {
    uint64_t exponent = uint64_t(1023 + lo) + next() % uint64_t(hi - lo + 1);
    return std::bit_cast<double>(exponent << 52 | next() >> 12);
  }
};

// Largest relative error seen, and where.
struct Worst {
  double error = 0, a = 0, b = 0;
  void relative(double got, long double want, double x, double y = 0) {
    take(want == 0 ? std::fabs(got) : double(fabsl((got - want) / want)), x, y);
  }
  void absolute(double got, long double want, double x) { take(double(fabsl(got - want)), x, 0); }
  void take(double e, double x, double y) {
    if (!(e <= error)) error = e, a = x, b = y;
  }
};
#define EXPECT_WITHIN_TOLERANCE(w)                                                      \
  EXPECT_LT((w).error, kTolerance) << "at " << std::hexfloat << (w).a << ", " << (w).b; \
  RecordProperty("worst", std::to_string((w).error * 1e16) + "e-16")

// Eight at once are eight alone, also where some of them are out of the ordinary.
TEST(FixedMath, ExpOfSeveralIsExpOfEach) {
  Numbers r{7};
  for (int i = 0; i < 100000; i++) {
    double x[fixed::kLanes], got[fixed::kLanes];
    for (double& one : x) one = i % 3 ? r.between(-707, 708) : r.between(-800, 800);
    if (i % 50 == 0) x[i % fixed::kLanes] = std::numeric_limits<double>::quiet_NaN();
    if (i % 70 == 0) x[i % fixed::kLanes] = -kInfinity;
    fixed::exp(x, got);
    for (int k = 0; k < fixed::kLanes; k++)
      ASSERT_EQ(std::bit_cast<uint64_t>(got[k]), std::bit_cast<uint64_t>(fixed::exp(x[k]))) << x[k];
  }
}

TEST(FixedMath, ExpIsAccurate) {
  Worst w;
  for (double x = -708; x <= 709.75; x += 0.00390625 * 0.37) w.relative(fixed::exp(x), expl(x), x);
  Numbers r{1};
  for (int i = 0; i < 300000; i++) {
    for (double x :
         {r.between(-708, 709.7), r.between(-1, 1), r.any_exponent(-70, 8), -r.any_exponent(-70, 8)}) {
      w.relative(fixed::exp(x), expl(x), x);
    }
  }
  EXPECT_WITHIN_TOLERANCE(w);
}

TEST(FixedMath, ExpOfTinyResultsIsWithinOneUnit) {
  Numbers r{2};
  for (int i = 0; i < 100000; i++) {
    double x = r.between(-746, -708);
    EXPECT_LE(fabsl(fixed::exp(x) - expl(x)), 0x1p-1074L) << x;
  }
}

TEST(FixedMath, LogIsAccurate) {
  Worst w;
  for (double x = 0.001; x < 20; x += 0.0001) w.relative(fixed::log(x), logl(x), x);
  Numbers r{3};
  for (int i = 0; i < 300000; i++) {
    double close = 1 + (i & 1 ? 1 : -1) * r.any_exponent(-52, -2);
    double subnormal = std::bit_cast<double>(r.next() >> (12 + r.next() % 50) | 1);
    for (double x : {r.any_exponent(-1022, 1023), r.between(0.5, 2), close, subnormal}) {
      w.relative(fixed::log(x), logl(x), x);
    }
  }
  EXPECT_WITHIN_TOLERANCE(w);
}

TEST(FixedMath, PowIsAccurate) {
  Worst w;
  Numbers r{4};
  for (int i = 0; i < 300000; i++) {
    double a = r.any_exponent(-1022, 1023);
    double b = r.between(-700, 700) / std::log(a);
    w.relative(fixed::pow(a, b), powl(a, b), a, b);
    a = r.between(0.5, 2), b = r.between(-700, 700);
    w.relative(fixed::pow(a, b), powl(a, b), a, b);
    a = 1 + (i & 1 ? 1 : -1) * r.any_exponent(-52, -20), b = r.between(-700, 700) / std::log(a);
    w.relative(fixed::pow(a, b), powl(a, b), a, b);
  }
  // Rotary frequencies, as models use them.
  for (double base : {10000.0, 500000.0, 1e6, 8e6}) {
    for (int i = 0; i < 256; i++) w.relative(fixed::pow(base, -i / 128.0), powl(base, -i / 128.0L), base, i);
  }
  EXPECT_WITHIN_TOLERANCE(w);
}

TEST(FixedMath, SinAndCosAreAccurate) {
  Worst w;
  auto check = [&](double x) {
    w.absolute(fixed::sin(x), sinl(x), x);
    w.absolute(fixed::cos(x), cosl(x), x);
  };
  for (double x = -30; x <= 30; x += 0.001) check(x);
  for (int i = -100000; i <= 100000; i++) check(i);
  Numbers r{5};
  for (int i = 0; i < 300000; i++) {
    check(r.between(-1e9, 1e9));
    check(r.any_exponent(-60, 29));
    check(-r.any_exponent(-60, 29));
    // The hardest ones: next to the zeros.
    check(double(3.14159265358979323846264338327950288L / 2 * (r.next() % 600000000)));
  }
  EXPECT_WITHIN_TOLERANCE(w);
}

TEST(FixedMath, EdgesBehaveAsDocumented) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  double max = std::numeric_limits<double>::max(), tiny = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(fixed::exp(0), 1);
  EXPECT_EQ(fixed::exp(-0.0), 1);
  EXPECT_EQ(fixed::exp(kInfinity), kInfinity);
  EXPECT_EQ(fixed::exp(max), kInfinity);
  EXPECT_EQ(fixed::exp(709.79), kInfinity);
  EXPECT_LT(fixed::exp(709.782712893383973), kInfinity);
  EXPECT_EQ(fixed::exp(-kInfinity), 0);
  EXPECT_EQ(fixed::exp(-746), 0);
  EXPECT_EQ(fixed::exp(-745.13), tiny);
  EXPECT_TRUE(std::isnan(fixed::exp(nan)));
  EXPECT_EQ(fixed::log(1), 0);
  EXPECT_EQ(fixed::log(0), -kInfinity);
  EXPECT_EQ(fixed::log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(fixed::log(-tiny)));
  EXPECT_TRUE(std::isnan(fixed::log(nan)));
  EXPECT_EQ(fixed::pow(2, 10), 1024);
  EXPECT_EQ(fixed::pow(2, -1074), tiny);
  EXPECT_EQ(fixed::pow(2, 1024), kInfinity);
  EXPECT_EQ(fixed::pow(1, nan), 1);
  EXPECT_EQ(fixed::pow(nan, 0), 1);
  EXPECT_EQ(fixed::pow(5, 1e-320), 1);
  EXPECT_EQ(fixed::pow(1 + 0x1p-52, max), kInfinity);
  EXPECT_EQ(fixed::pow(1 - 0x1p-53, max), 0);
  for (double b : {-kInfinity, -2.0, 2.0, kInfinity}) {
    for (double a : {0.0, 0.5, 3.0, kInfinity}) EXPECT_EQ(fixed::pow(a, b), std::pow(a, b)) << a << ' ' << b;
  }
  EXPECT_TRUE(std::isnan(fixed::pow(-2, 2)));
  EXPECT_TRUE(std::isnan(fixed::pow(2, nan)));
  EXPECT_TRUE(std::signbit(fixed::sin(-0.0)));
  EXPECT_EQ(fixed::cos(0), 1);
  EXPECT_FALSE(std::isnan(fixed::sin(0x1p30)));
  for (double x : {0x1.0000000000001p30, -1e300, kInfinity, -kInfinity, nan}) {
    EXPECT_TRUE(std::isnan(fixed::sin(x))) << x;
    EXPECT_TRUE(std::isnan(fixed::cos(x))) << x;
  }
}

// A million results in one number. If this fails on some machine, that machine (or its compiler's flags) does
// not do IEEE arithmetic as written, and the promise "same seed, same tokens everywhere" is broken there.
TEST(FixedMath, TheBitsAreTheSameEverywhere) {
  uint64_t hash = 0;
  auto mix = [&](double v) { hash = (hash ^ std::bit_cast<uint64_t>(v)) * 0x100000001b3 + (hash >> 29); };
  Numbers r{6};
  for (int i = 0; i < 200000; i++) {
    mix(fixed::exp(r.between(-746, 710)));
    mix(fixed::log(r.any_exponent(-1022, 1023)));
    double a = r.any_exponent(-20, 20);
    mix(fixed::pow(a, r.between(-60, 60)));
    double x = r.between(-0x1p30, 0x1p30);
    mix(fixed::sin(x));
    mix(fixed::cos(x));
  }
  EXPECT_EQ(hash, 0xb3e2a2588b0731d4) << std::hex << hash;
}

}  // namespace
}  // namespace gimbal
