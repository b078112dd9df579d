// The maps of integers and bool: values of every type come as i64, and wrap to `bits` bits afterwards
// (negative: without sign; bool: -1).
#include "backends/cpu/map_abi.h"

#include <limits>

namespace gimbal::cpu_maps {
namespace {

// Brings 64 bits to those of a type, without a branch and without arithmetic shifts, so that loops vectorize.
struct Wrap {
  explicit Wrap(int bits)
      : mask(~uint64_t(0) >> (64 - (bits < 0 ? -bits : bits))),
        sign(bits < 0 ? 0 : uint64_t(1) << (bits - 1)) {}
  int64_t operator()(uint64_t v) const { return int64_t(((v & mask) ^ sign) - sign); }
  uint64_t mask, sign;  // sign: the bit that counts as negative
};
int width_of(int bits) { return bits < 0 ? -bits : bits; }
bool overflows(int64_t a, int64_t b) { return a == std::numeric_limits<int64_t>::min() && b == -1; }

// Each has a and b, and gives 64 bits that are then wrapped.
using Bits = uint64_t;
Bits one_Abs(int64_t a) { return a < 0 ? 0 - Bits(a) : Bits(a); }
Bits one_Neg(int64_t a) { return 0 - Bits(a); }
Bits one_Sqr(int64_t a) { return Bits(a) * Bits(a); }
Bits one_Relu(int64_t a) { return a > 0 ? Bits(a) : 0; }
Bits one_Sign(int64_t a) { return Bits(int64_t(a > 0) - int64_t(a < 0)); }
Bits one_Not(int64_t a) { return ~Bits(a); }
Bits two_Add(int64_t a, int64_t b, int) { return Bits(a) + Bits(b); }
Bits two_Sub(int64_t a, int64_t b, int) { return Bits(a) - Bits(b); }
Bits two_Mul(int64_t a, int64_t b, int) { return Bits(a) * Bits(b); }
Bits two_Maximum(int64_t a, int64_t b, int) { return Bits(a > b ? a : b); }
Bits two_Minimum(int64_t a, int64_t b, int) { return Bits(a < b ? a : b); }
// Rounded down; by 0: 0. The smallest number by -1 wraps.
Bits two_FloorDiv(int64_t a, int64_t b, int) {
  if (b == 0) return 0;
  if (overflows(a, b)) return Bits(a);
  return Bits(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}
// With the sign of b; by 0: 0.
Bits two_Remainder(int64_t a, int64_t b, int) {
  if (b == 0 || overflows(a, b)) return 0;
  const int64_t rest = a % b;
  return Bits(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
}
// By squaring. Of a negative exponent the reciprocal, rounded to 0; that of 0 is 0.
Bits two_Pow(int64_t a, int64_t b, int) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? Bits(-1) : 1) : 0;
  Bits power = 1;
  for (Bits square = Bits(a); b; b >>= 1, square *= square)
    if (b & 1) power *= square;
  return power;
}
Bits two_And(int64_t a, int64_t b, int) { return Bits(a & b); }
Bits two_Or(int64_t a, int64_t b, int) { return Bits(a | b); }
Bits two_Xor(int64_t a, int64_t b, int) { return Bits(a ^ b); }
// By the width or more, or by less than 0: every bit leaves.
Bits two_Shl(int64_t a, int64_t b, int bits) { return b < 0 || b >= width_of(bits) ? 0 : Bits(a) << b; }
Bits two_Shr(int64_t a, int64_t b, int bits) {
  return Bits(b < 0 || b >= width_of(bits) ? (a < 0 ? -1 : 0) : a >> b);
}
Bits two_Eq(int64_t a, int64_t b, int) { return a == b; }
Bits two_Ne(int64_t a, int64_t b, int) { return a != b; }
Bits two_Lt(int64_t a, int64_t b, int) { return a < b; }
Bits two_Le(int64_t a, int64_t b, int) { return a <= b; }
Bits two_Gt(int64_t a, int64_t b, int) { return a > b; }
Bits two_Ge(int64_t a, int64_t b, int) { return a >= b; }

// A number of an op as an integer: without its fraction, and within 64 bits.
int64_t whole(double v) {
  if (!(v > -0x1p63)) return v != v ? 0 : std::numeric_limits<int64_t>::min();
  return v >= 0x1p63 ? std::numeric_limits<int64_t>::max() : int64_t(v);
}

}  // namespace

#define INT_1(Id)                                                                                   \
  void int_##Id(const int64_t* a, const int64_t*, const double*, int64_t* y, int64_t n, int bits) { \
    const Wrap wrap(bits);                                                                          \
    for (int64_t i = 0; i < n; i++) y[i] = wrap(one_##Id(a[i]));                                    \
  }
#define INT_2(Id)                                                                                     \
  void int_##Id(const int64_t* a, const int64_t* b, const double*, int64_t* y, int64_t n, int bits) { \
    const Wrap wrap(bits);                                                                            \
    for (int64_t i = 0; i < n; i++) y[i] = wrap(two_##Id(a[i], b[i], bits));                          \
  }
#define GIMBAL_MAP_NUMBERS(...)
#define GIMBAL_MAP(number, Id, name, inputs, classes, ulps) MAP_IF(MAP_HAS_I_##classes, INT_##inputs(Id))
#include "ops/maps.def"

void int_Affine(const int64_t* a, const int64_t*, const double* f, int64_t* y, int64_t n, int bits) {
  const Bits times = Bits(whole(f[0])), plus = Bits(whole(f[1]));
  const Wrap wrap(bits);
  for (int64_t i = 0; i < n; i++) y[i] = wrap(Bits(a[i]) * times + plus);
}

}  // namespace gimbal::cpu_maps
