// hot: every number of a reference
#include "ops/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gimbal {

FloatFormat float_format(DType t) {
  switch (t) {
    case DType::F16: return {11, -14, 65504};
    case DType::BF16: return {8, -126, 0x1.fep127};
    case DType::F64: return {53, -1022, std::numeric_limits<double>::max()};
    case DType::F8_E4M3: return {4, -6, 448, false};
    case DType::F8_E5M2: return {3, -14, 57344};
    default: return {24, -126, std::numeric_limits<float>::max()};
  }
}

double unit_around(DType t, double v) {
  const FloatFormat f = float_format(t);
  const int exponent = v == 0 ? f.least : std::max(std::ilogb(v), f.least);
  return std::ldexp(1.0, exponent - (f.digits - 1));
}

double rounded(DType t, double v) {
  const FloatFormat f = float_format(t);
  if (t == DType::F64 || std::isnan(v)) return v;
  const double unit = std::isfinite(v) ? unit_around(t, v) : 1;
  const double near = std::nearbyint(v / unit) * unit;
  if (std::fabs(near) <= f.largest) return near;
  return f.infinities ? std::copysign(INFINITY, v) : NAN;
}

double rounded(DType t, int64_t v, bool is_unsigned) {
  const bool negative = v < 0 && !is_unsigned;
  uint64_t size = negative ? 0 - uint64_t(v) : uint64_t(v);
  // The bits below the last digit, whose sum is rounded by hand: 64 of them are no double.
  int lost = 0;
  while (size >> lost >> float_format(t).digits) lost++;
  if (lost > 0) {
    const uint64_t rest = size & ((uint64_t(1) << lost) - 1), half = uint64_t(1) << (lost - 1);
    size >>= lost;
    size += rest > half || (rest == half && (size & 1));
  }
  const double near = std::ldexp(double(size), lost);
  return rounded(t, negative ? -near : near);
}

int64_t wrapped(DType t, int64_t v) {
  if (t == DType::Bool) return v != 0;
  const int bits = 8 * info(t).bytes;
  if (bits == 64) return v;
  const int64_t range = int64_t(1) << bits, low = int64_t(uint64_t(v) & uint64_t(range - 1));
  return is_signed(t) && low >= range / 2 ? low - range : low;
}

int64_t truncated(DType t, double v) {
  if (t == DType::Bool) return v != 0;
  if (std::isnan(v)) return 0;
  const int bits = 8 * info(t).bytes - is_signed(t);
  const double end = std::ldexp(1.0, bits), begin = is_signed(t) ? -end : 0;
  if (v >= end) return bits == 64 ? -1 : int64_t((uint64_t(1) << bits) - 1);
  if (v <= begin) return is_signed(t) ? int64_t(uint64_t(-1) << bits) : 0;
  return v >= 0x1p63 ? int64_t(uint64_t(v)) : int64_t(v);
}

double small_float(DType t, uint8_t code) {
  const FloatFormat f = float_format(t);
  const int stored = f.digits - 1, exponent = (code & 0x7f) >> stored, fraction = code & ((1 << stored) - 1);
  const bool special = f.infinities ? exponent == 31 : (code & 0x7f) == 0x7f;
  const double size = special         ? (f.infinities && fraction == 0 ? INFINITY : NAN)
                      : exponent == 0 ? std::ldexp(fraction, f.least - stored)
                                      : std::ldexp((1 << stored) + fraction, f.least + exponent - 1 - stored);
  return code & 0x80 ? -size : size;
}

}  // namespace gimbal
