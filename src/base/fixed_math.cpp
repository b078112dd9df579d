// Textbook methods: argument reduction with constants split into pieces whose multiples
// are exact (W. J. Cody and W. Waite, "Software Manual for the Elementary Functions",
// 1980); Taylor series of exp, sin and cos on the reduced range; log as 2
// atanh((m-1)/(m+1)); values of more than 53 bits as an unevaluated sum of two doubles (T.
// J. Dekker, "A floating-point technique for extending the available precision", 1971).
#include "base/fixed_math.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

namespace gimbal::fixed {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ln 2: the first piece has 40 bits, so that its product with any exponent (11 bits) is exact.
constexpr double kLn2Hi = 0x1.62e42fefa2000p-1;
constexpr double kLn2Lo = 0x1.9ef35793c7673p-41;
constexpr double kInvLn2 = 0x1.71547652b82fep+0;

// pi/2: three pieces of 23 bits, exact when multiplied by up to 2^30, and the remainder after 68 bits.
constexpr double kHalfPi1 = 0x1.921fb4p+0;
constexpr double kHalfPi2 = 0x1.4442dp-24;
constexpr double kHalfPi3 = 0x1.84698p-48;
constexpr double kHalfPi4 = 0x1.3198a2e037073p-69;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
constexpr double kMaxAngle = 0x1p30;

// The value hi + lo, with |lo| at most half a unit in the last place of hi.
struct Pair {
  double hi, lo;
};

// Exact a + b.
Pair sum(double a, double b) {
  double s = a + b;
  double b_part = s - a;
  return {s, (a - (s - b_part)) + (b - b_part)};
}

// Exact a + b where |a| >= |b| or a is 0.
Pair sum_ordered(double a, double b) {
  double s = a + b;
  return {s, b - (s - a)};
}

// Splits a (below 2^990) into two halves of 26 bits.
Pair halves(double a) {
  double t = a * 134217729.0;  // 2^27 + 1
  double hi = t - (t - a);
  return {hi, a - hi};
}

// Exact a * b, if nothing overflows or is subnormal.
Pair product(double a, double b) {
  Pair x = halves(a), y = halves(b);
  double p = a * b;
  return {p, ((x.hi * y.hi - p) + x.hi * y.lo + x.lo * y.hi) + x.lo * y.lo};
}

Pair operator*(Pair a, Pair b) {
  Pair p = product(a.hi, b.hi);
  return sum_ordered(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

Pair operator+(Pair a, Pair b) {
  Pair s = sum(a.hi, b.hi);
  return sum_ordered(s.hi, s.lo + (a.lo + b.lo));
}

// The nearest whole number, halves away from zero; |x| must be below 2^53.
double nearest(double x) { return double(int64_t(x < 0 ? x - 0.5 : x + 0.5)); }

// 2^n for n in -1022..1023.
double power_of_two(int n) { return std::bit_cast<double>(uint64_t(n + 1023) << 52); }

// 1/2! .. 1/14!, for |r| <= 0.3466: the first omitted term is below 2e-19.
constexpr double kExpTerms[] = {1.0 / 87178291200,
                                1.0 / 6227020800,
                                1.0 / 479001600,
                                1.0 / 39916800,
                                1.0 / 3628800,
                                1.0 / 362880,
                                1.0 / 40320,
                                1.0 / 5040,
                                1.0 / 720,
                                1.0 / 120,
                                1.0 / 24,
                                1.0 / 6,
                                0.5};

// e^(x + tail) for a tail below 1e-10 and -746 < x < 710.
double exp_with_tail(double x, double tail) {
  double n = nearest(x * kInvLn2);
  Pair r = sum(x - n * kLn2Hi, -(n * kLn2Lo));  // the first difference is exact
  r.lo += tail;
  double q = 0;
  for (double term : kExpTerms) q = q * r.hi + term;
  q *= r.hi * r.hi;
  double e = 1 + (r.hi + (q + r.lo * (1 + (r.hi + q))));
  // In two steps, because 2^n alone may be out of range; only the last one can round.
  int exponent = int(n), half = exponent / 2;
  return e * power_of_two(half) * power_of_two(exponent - half);
}

// log x as a pair, for positive finite x.
Pair log_pair(double x) {
  int exponent = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    exponent = -54;
  }
  // x = m * 2^exponent with m in [sqrt(1/2), sqrt(2)); the order of the bits is the order of the numbers.
  constexpr int64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  int64_t bits = std::bit_cast<int64_t>(x);
  int64_t above = (bits - kSqrtHalf) >> 52;
  double m = std::bit_cast<double>(bits - above * (int64_t(1) << 52));
  exponent += int(above);

  // s = (m - 1) / (m + 1), |s| <= 0.1716; the numerator is exact.
  double f = m - 1;
  Pair d = sum(1, m);
  double q = f / d.hi;
  Pair back = product(q, d.hi);
  Pair s = sum_ordered(q, (((f - back.hi) - back.lo) - q * d.lo) / d.hi);
  Pair z = s * s;
  // log m = 2s (1 + z/3 + z^2/5 + ...): the tail, from z^3/7 on, is small enough for plain doubles.
  double tail = 0;
  for (int n = 29; n >= 7; n -= 2) tail = tail * z.hi + 1.0 / n;
  constexpr Pair kThird = {0x1.5555555555555p-2, 0x1.5555555555555p-56};
  constexpr Pair kFifth = {0x1.999999999999ap-3, -0x1.999999999999ap-57};
  Pair p = kFifth + z * Pair{tail, 0};
  p = kThird + z * p;
  p = Pair{1, 0} + z * p;
  p = s * p;
  return Pair{exponent * kLn2Hi, 0} + (Pair{exponent * kLn2Lo, 0} + Pair{2 * p.hi, 2 * p.lo});
}

struct Angle {
  int quadrant;  // 0..3
  Pair r;        // -pi/4 .. pi/4, and a little
};

// x = (4 i + quadrant) * pi/2 + r, for |x| <= kMaxAngle.
Angle reduce(double x) {
  double n = nearest(x * kTwoOverPi);
  Pair r = sum(x - n * kHalfPi1, -(n * kHalfPi2));  // the first difference is exact
  Pair s = sum(r.hi, -(n * kHalfPi3));
  return {int(int64_t(n) & 3), sum(s.hi, (r.lo + s.lo) - n * kHalfPi4)};
}

// Series up to r^17 and r^18; the first omitted terms are below 1e-19.
double sin_reduced(Pair r) {
  constexpr double kTerms[] = {1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
                               1.0 / 362880,          -1.0 / 5040,          1.0 / 120,        -1.0 / 6};
  double z = r.hi * r.hi, q = 0;
  for (double term : kTerms) q = q * z + term;
  return r.hi + (r.hi * z * q + r.lo * (1 - 0.5 * z));
}
double cos_reduced(Pair r) {
  constexpr double kTerms[] = {
      -1.0 / 6402373705728000, 1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600,
      -1.0 / 3628800,          1.0 / 40320,          -1.0 / 720,         1.0 / 24};
  double z = r.hi * r.hi, q = 0;
  for (double term : kTerms) q = q * z + term;
  return 1 - (0.5 * z - (z * z * q - r.hi * r.lo));
}

bool in_range(double x) { return x >= -kMaxAngle && x <= kMaxAngle; }

}  // namespace

double exp(double x) {
  if (x != x) return kNaN;
  if (x > 709.79) return kInfinity;
  if (x < -745.14) return 0;
  return exp_with_tail(x, 0);
}

// Each step of exp_with_tail() for all lanes before the next step: the steps of one value depend on each
// other, so a single value would wait for each result.
void exp(const double (&x)[kLanes], double (&out)[kLanes]) {
  using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));
  using Bits = int64_t __attribute__((vector_size(kLanes * sizeof(int64_t))));
  using Ints = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));
  bool ordinary = true;  // 2^n is a normal number
  for (double one : x) ordinary &= one > -708 && one < 709;
  if (!ordinary) {
    for (int i = 0; i < kLanes; i++) out[i] = exp(x[i]);
    return;
  }
  Doubles v;
  std::memcpy(&v, x, sizeof v);
  // nearest(): adds half with the number's sign, then truncates
  const Doubles turns = v * kInvLn2;
  const Bits half = ((Bits)turns & std::numeric_limits<int64_t>::min()) | std::bit_cast<int64_t>(0.5);
  const Doubles n = __builtin_convertvector(__builtin_convertvector(turns + (Doubles)half, Ints), Doubles);
  // sum() of two numbers
  const Doubles high = v - n * kLn2Hi, low = -(n * kLn2Lo), r = high + low, part = r - high;
  const Doubles rest = (high - (r - part)) + (low - part);
  Doubles q = {};
  for (double term : kExpTerms) q = q * r + term;
  q *= r * r;
  const Doubles e = 1 + (r + (q + rest * (1 + (r + q))));
  // Adding 1.5 * 2^52 leaves the integer in the lowest bits.
  const Bits power = (Bits)(n + (0x1.8p52 + 1023)) << 52;
  const Doubles all = e * (Doubles)power;
  std::memcpy(out, &all, sizeof all);
}

double log(double x) {
  if (x != x || x < 0) return kNaN;
  if (x == 0) return -kInfinity;
  if (x == kInfinity) return x;
  return log_pair(x).hi;
}

double pow(double a, double b) {
  if (a == 1 || b == 0) return 1;
  if (a != a || b != b || a < 0) return kNaN;
  if (a == 0 || a == kInfinity) return (a == 0) == (b > 0) ? 0 : kInfinity;
  if (b == kInfinity || b == -kInfinity) return (a < 1) == (b > 0) ? 0 : kInfinity;
  Pair l = log_pair(a);
  double estimate = l.hi * b;
  if (estimate > 710) return kInfinity;
  if (estimate < -746) return 0;
  if (estimate < 0x1p-60 && estimate > -0x1p-60) return 1;  // avoids underflow in the products below
  Pair y = l * Pair{b, 0};
  return exp_with_tail(y.hi, y.lo);
}

double sin(double x) {
  if (!in_range(x)) return kNaN;
  if (x < 0x1p-27 && x > -0x1p-27) return x;  // keeps the sign of zero
  Angle a = reduce(x);
  double v = a.quadrant & 1 ? cos_reduced(a.r) : sin_reduced(a.r);
  return a.quadrant & 2 ? -v : v;
}

double cos(double x) {
  if (!in_range(x)) return kNaN;
  Angle a = reduce(x);
  double v = a.quadrant & 1 ? sin_reduced(a.r) : cos_reduced(a.r);
  return (a.quadrant + 1) & 2 ? -v : v;
}

}  // namespace gimbal::fixed
