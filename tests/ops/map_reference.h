// What the maps of ops/maps.def should be: the C library's functions in a wider type. A judge of its own:
// nothing here is the engine's.
#pragma once
#include <cmath>
#include <limits>

#include "ops/maps.h"

namespace gimbal::test {

// The exact value, almost: of floats in double, of doubles in long double. f are the numbers of an op, as the
// kernel takes them.
template <class Wide, class T>
Wide map_reference(MapFunction function, T x_, T y_, const double* f) {
  using std::abs, std::copysign, std::erfc, std::exp, std::expm1, std::floor, std::fmod, std::isnan,
      std::sqrt;
  using enum MapFunction;
  const Wide x = x_, y = y_, first = T(f[0]), second = T(f[1]);
  const Wide pi = 3.14159265358979323846264338327950288L;
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
    case Sign: return isnan(x) ? x : Wide((x > 0) - (x < 0));
    case IsNan: return isnan(x);
    case Add: return x + y;
    case Sub: return x - y;
    case Mul: return x * y;
    case Div: return x / y;
    case Maximum: return isnan(x) ? x : isnan(y) ? y : x == y ? (std::signbit(x) ? y : x) : x > y ? x : y;
    case Minimum: return isnan(x) ? x : isnan(y) ? y : x == y ? (std::signbit(x) ? x : y) : x < y ? x : y;
    case Pow: return std::pow(x, y);
    case PowF: return std::pow(x, first);
    case FloorDiv: return floor(x / y);
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

}  // namespace gimbal::test
