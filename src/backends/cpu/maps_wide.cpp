// The product of all bits of a double with those bits of 2 / pi that count (M. Payne and R. Hanek, "Radian
// reduction for trigonometric functions", SIGNUM Newsletter 18, 1983), and remainders. fmod is exact by
// definition, so the C library's is no other than any.
#include "backends/cpu/maps_wide.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace gimbal::cpu_maps {
namespace {

// 64 zeros, then 2 / pi from 2^-1 on.
constexpr uint64_t kTwoOverPi[] = {0,
                                   0xa2f9836e4e441529,
                                   0xfc2757d1f534ddc0,
                                   0xdb6295993c439041,
                                   0xfe5163abdebbc561,
                                   0xb7246e3a424dd2e0,
                                   0x06492eea09d1921c,
                                   0xfe1deb1cb129a73e,
                                   0xe88235f52ebb4484,
                                   0xe99c7026b45f7e41,
                                   0x3991d639835339f4,
                                   0x9c845f8bbdf9283b,
                                   0x1ff897ffde05980f,
                                   0xef2f118b5a0a6d1f,
                                   0x6d367ecf27cb09b7,
                                   0x4f463f669e5fea2d,
                                   0x7527bac7ebe5f17b,
                                   0x3d0739f78a5292ea,
                                   0x6bfb5fb11f8d5d08,
                                   0x56033046fc7b6bab,
                                   0xf0cfbc209af4361d};

// a * b as hi + lo (T. J. Dekker, 1971).
void exact_product(double a, double b, double* hi, double* lo) {
  const auto top = [](double v) {
    const double wide = v * 134217729.0;
    return wide - (wide - v);
  };
  const double a1 = top(a), a2 = a - a1, b1 = top(b), b2 = b - b1;
  *hi = a * b;
  *lo = ((a1 * b1 - *hi) + a1 * b2 + a2 * b1) + a2 * b2;
}

__extension__ using Twice = unsigned __int128;

}  // namespace

int large_angle(double a, double* r, double* low) {
  const uint64_t bits = std::bit_cast<uint64_t>(a), m = (bits & 0xfffffffffffff) | 0x10000000000000;
  const int at =
      int(bits >> 52) - 1075 - 2 + 64;  // of the first bit that is not a multiple of 4 quarter turns
  if (bits >> 52 == 0x7ff || at < 0) return 0;
  uint64_t h[3];
  for (int i = 0; i < 3; i++) {
    const int word = at / 64 + i, by = at % 64;
    h[i] = kTwoOverPi[word] << by | (by ? kTwoOverPi[word + 1] >> (64 - by) : 0);
  }
  // 192 bits of which the top 2 are quarter turns, rounded; the others a fraction of either sign.
  const Twice low_product = Twice(m) * h[2], middle = Twice(m) * h[1] + uint64_t(low_product >> 64);
  uint64_t p[3] = {m * h[0] + uint64_t(middle >> 64), uint64_t(middle), uint64_t(low_product)};
  const int quarter = int((p[0] + 0x2000000000000000) >> 62);
  p[0] = p[0] << 2 | p[1] >> 62, p[1] = p[1] << 2 | p[2] >> 62, p[2] <<= 2;
  const bool below = p[0] >> 63;
  if (below)
    for (uint64_t& word : p) word = ~word;
  int zeros = 64;  // before the first one; a double is never nearer to a multiple of pi/2 than 2^-62
  if (p[0]) {
    zeros = std::countl_zero(p[0]);
    if (zeros) p[0] = p[0] << zeros | p[1] >> (64 - zeros), p[1] = p[1] << zeros | p[2] >> (64 - zeros);
  } else {
    p[0] = p[1], p[1] = p[2];
  }
  const double unit = std::bit_cast<double>(uint64_t(1023 - 53 - zeros) << 52);  // of the top 53 bits
  const double turn = double(p[0] >> 11) * unit;
  const double turn_low = double((p[0] & 0x7ff) << 42 | p[1] >> 22) * unit * 0x1p-53;
  constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
  double high, lost;
  exact_product(turn, kHalfPi, &high, &lost);
  lost += turn * kHalfPiLow + turn_low * kHalfPi;
  *r = below ? -high : high;
  *low = below ? -lost : lost;
  return quarter;
}

double floor_remainder(double x, double y) {
  const double rest = std::fmod(x, y);
  if (rest != rest) return std::numeric_limits<double>::quiet_NaN();
  if (rest == 0) return std::copysign(0.0, y);
  return (rest < 0) == (y < 0) ? rest : rest + y;
}

double floor_quotient(double x, double y) {
  const double quotient = x / y;
  if (quotient != quotient) return std::numeric_limits<double>::quiet_NaN();
  if (y == 0) return quotient;
  const double rest = std::fmod(x, y);
  if (rest != rest) return std::numeric_limits<double>::quiet_NaN();
  // The quotient without the remainder is whole but for its rounding.
  double whole = (x - rest) / y;
  if (rest != 0 && (rest < 0) != (y < 0)) whole -= 1;
  const double near = std::floor(whole);
  if (whole == 0) return std::copysign(0.0, quotient);
  return whole - near > 0.5 ? near + 1 : near;
}

}  // namespace gimbal::cpu_maps
