// The maps of ops/maps.def by the C library's functions in a wider type, and of integers by plain arithmetic.
// The reference of the op, and the judge of its tests: no kernel uses it.
#pragma once
#include <cmath>
#include <limits>

#include "ops/maps.h"

namespace gimbal {

// The exact value, almost: of floats in double, of doubles in long double. f are the numbers of an op, as the
// kernel takes them.
template <class Wide, class T>
Wide map_reference(MapFunction function, T x_, T y_, const double* f) {
  using std::abs, std::copysign, std::erfc, std::exp, std::expm1, std::floor, std::fmod, std::isnan,
      std::sqrt;
  using enum MapFunction;
  const Wide x = x_, y = y_, first = T(f[0]), second = T(f[1]);
  const auto pi = Wide(3.14159265358979323846264338327950288L);
  switch (function) {
    case Exp: return exp(x);
    case ExpM1: return expm1(x);
    case Log: return std::log(x);
    case Log1P: return std::log1p(x);
    case Log2: return std::log2(x);
    case Sin: return std::sin(x);
    case Cos: return std::cos(x);
    case Tan: return std::tan(x);
    case Tanh: return std::tanh(x);
    case Asin: return std::asin(x);
    case Acos: return std::acos(x);
    case Atan: return std::atan(x);
    case Atan2: return std::atan2(x, y);
    case Sinh: return std::sinh(x);
    case Cosh: return std::cosh(x);
    case Asinh: return std::asinh(x);
    case Acosh: return std::acosh(x);
    case Atanh: return std::atanh(x);
    case CopySign: return isnan(x) ? x : copysign(x, y);
    case Sigmoid: return 1 / (1 + exp(-x));
    case Abs: return abs(x);
    case Neg: return -x;
    case Recip: return 1 / x;
    case Sqr: return x * x;
    case Sqrt: return sqrt(x);
    case RSqrt: return 1 / sqrt(x);
    case Gelu: return x / (1 + exp(-2 * sqrt(2 / pi) * (x + Wide(0.044715L) * x * x * x)));
    case GeluErf: return Wide(0.5) * x * erfc(-x / sqrt(Wide(2)));
    case Erf: return std::erf(x);
    case Relu: return isnan(x) ? x : x > 0 ? x : Wide(0);
    case Silu: return x / (1 + exp(-x));
    case Floor: return floor(x);
    case Ceil: return std::ceil(x);
    case Trunc: return std::trunc(x);
    case Round: return std::nearbyint(x);
    case Sign: return isnan(x) || x == 0 ? x : Wide((x > 0) - (x < 0));
    case IsNan: return isnan(x);
    case Add: return x + y;
    case Sub: return x - y;
    case Mul: return x * y;
    case Div: return x / y;
    case Maximum: return isnan(x) ? x : isnan(y) ? y : x == y ? (std::signbit(x) ? y : x) : x > y ? x : y;
    case Minimum: return isnan(x) ? x : isnan(y) ? y : x == y ? (std::signbit(x) ? x : y) : x < y ? x : y;
    case Pow: return std::pow(x, y);
    case PowF: return std::pow(x, first);
    case FloorDiv: {  // from the exact remainder: a quotient next to a whole number may round to it
      const Wide rest = fmod(x, y);
      if (y == 0 || isnan(rest)) return y == 0 ? x / y : rest;
      // All numbers from here on are whole: the quotient is rounded to the nearest one.
      if (abs(Wide(T(x / y))) >= std::ldexp(Wide(1), std::numeric_limits<T>::digits)) return x / y;
      const Wide whole = std::nearbyint((x - rest) / y) - (rest != 0 && (rest < 0) != (y < 0));
      return whole == 0 ? copysign(whole, x / y) : whole;
    }
    case Remainder: {
      const Wide rest = fmod(x, y);
      if (rest == 0) return copysign(rest, y);
      return (rest < 0) == (y < 0) ? rest : Wide(T(T(rest) + y_));
    }
    case Eq: return x == y;
    case Ne: return x != y;
    case Lt: return x < y;
    case Le: return x <= y;
    case Gt: return x > y;
    case Ge: return x >= y;
    case Affine: return Wide(T(x_ * T(first))) + second;
    case Elu: return x > 0 ? x : first * expm1(x);
    case Not:
    case And:
    case Or:
    case Xor:
    case Shl:
    case Shr: break;  // of integers
  }
  return std::numeric_limits<Wide>::quiet_NaN();
}

// Of numbers of an integer format with `bits` bits, and of bool (1 bit); the caller wraps the result to them.
inline uint64_t map_reference(MapFunction function, int64_t x, int64_t y, int bits, const double* f) {
  using enum MapFunction;
  const auto a = uint64_t(x), b = uint64_t(y);
  const bool outside = y < 0 || y >= bits;  // a shift that moves every bit out
  // By 0: 0. By -1, whose quotient may have no number: the negative.
  const int64_t rest = y == 0 || y == -1 ? 0 : x % y;
  const bool down = rest != 0 && (rest < 0) != (y < 0);
  const auto number = [](double v) {  // without its fraction, within 64 bits
    return std::isnan(v) ? 0 : v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : int64_t(v);
  };
  switch (function) {
    case Abs: return x < 0 ? 0 - a : a;
    case Neg: return 0 - a;
    case Sqr: return a * a;
    case Relu: return x < 0 ? 0 : a;
    case Sign: return x < 0 ? uint64_t(-1) : x > 0;
    case Add: return a + b;
    case Sub: return a - b;
    case Mul: return a * b;
    case Maximum: return x < y ? b : a;
    case Minimum: return x < y ? a : b;
    case FloorDiv: return y == 0 ? 0 : y == -1 ? 0 - a : uint64_t(x / y) - down;
    case Remainder: return uint64_t(rest) + (down ? b : 0);
    case Pow: {
      if (y < 0) return x == 1 ? 1 : x != -1 ? 0 : y % 2 ? uint64_t(-1) : 1;
      uint64_t power = 1;  // by the digits of the exponent, from the highest one down
      for (int digit = 63; digit-- > 0;) power = power * power * (b >> digit & 1 ? a : 1);
      return power;
    }
    case Not: return ~a;
    case And: return a & b;
    case Or: return a | b;
    case Xor: return a ^ b;
    case Shl: return outside ? 0 : a << y;
    case Shr: return outside ? (x < 0 ? uint64_t(-1) : 0) : uint64_t(x >> y);
    case Eq: return x == y;
    case Ne: return x != y;
    case Lt: return x < y;
    case Le: return x <= y;
    case Gt: return x > y;
    case Ge: return x >= y;
    case Affine: return a * uint64_t(number(f[0])) + uint64_t(number(f[1]));
    default: return 0;  // of floats alone
  }
}

// Absolute errors that count as none: ops/maps.def and the reference data's README.
template <class T>
double allowed_absolute(MapFunction function) {
  const bool single = sizeof(T) == 4;
  switch (function) {
    case MapFunction::Gelu:
    case MapFunction::GeluErf: return single ? 5e-7 : 9.3e-16;
    case MapFunction::Sigmoid: return single ? 1.2e-38 : 2.3e-308;
    case MapFunction::Silu: return single ? 1.3e-36 : 1.7e-305;
    default: return 0;
  }
}
// Undefined: x * 0 at -infinity.
inline bool has_map_reference(MapFunction function, double x) {
  return x != -INFINITY ||
         (function != MapFunction::Gelu && function != MapFunction::GeluErf && function != MapFunction::Silu);
}

// One unit in the last place of a T next to v.
template <class T, class Wide>
Wide unit_of(Wide v) {
  using Limits = std::numeric_limits<T>;
  int exponent = Limits::min_exponent;
  if (std::abs(v) > Limits::min()) std::frexp(v, &exponent);
  if (exponent > Limits::max_exponent) exponent = Limits::max_exponent;
  return std::ldexp(Wide(1), exponent - Limits::digits);
}

// The error of `got` in units in the last place; infinity counts as the number after the largest. NaN for a
// NaN: 0; other wrong kinds: infinity.
template <class T, class Wide>
double map_error(T got, Wide want, Wide absolute) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? 0 : INFINITY;
  const Wide top = std::ldexp(Wide(1), std::numeric_limits<T>::max_exponent);
  const auto inside = [top](Wide v) { return v > top ? top : v < -top ? -top : v; };
  const Wide error = std::abs(inside(got) - inside(want)) - absolute;
  return error > 0 ? double(error / unit_of<T>(want)) : 0;
}

}  // namespace gimbal
