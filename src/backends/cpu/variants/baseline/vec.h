// Sixteen lanes in plain C, for any CPU. Slow but correct: an FMA that the CPU lacks is computed
// exactly in double, rounded to odd there and once to float (Boldo and Melquiond, "Emulation of FMA
// and correctly rounded sums: proved algorithms using rounding to odd", 2008), so the bits are those of the
// hardware instruction.
#pragma once
#include <stdint.h>

#include "tensor/half.h"

namespace CPU_VARIANT {
namespace {

constexpr int16_t kRank = 0;
// Rows of activations that share a load of the weights, and tiles that share a load of the activations: as
// registers allow.
// Products of few rows (kernels/few_rows.h): kFewTogether rows at once, as many as registers allow;
// kFewestTogether rows in the smallest group.
constexpr int kRowsAtOnce = 4, kTilesTogether = 1, kFewTogether = 4, kFewestTogether = 4;

// For attention with 1, 2, 4 .. queries: the number of cache vectors read together.
constexpr int kVectorsOfQueries[] = {1};

struct F {
  float v[16];
};
struct I {
  int32_t v[16];
};
struct Codes {
  uint8_t v[64];
};

#define EACH for (int i = 0; i < 16; i++)
#define EACH_CODE for (int i = 0; i < 64; i++)

inline float fma1(float a, float b, float c) {
#if defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  double p = double(a) * b, s = p + c;  // p is exact
  double t = s - p, e = (p - (s - t)) + (double(c) - t);
  if (e != 0 && e == e) {  // s was rounded: take the neighbour with an odd last bit
    int64_t u;
    __builtin_memcpy(&u, &s, 8);
    if (!(u & 1)) u += (e > 0) == (s > 0) ? 1 : -1;
    __builtin_memcpy(&s, &u, 8);
  }
  return float(s);
#endif
}

inline F splat(float x) {
  F r;
  EACH r.v[i] = x;
  return r;
}
inline F load(const float* p) {
  F r;
  __builtin_memcpy(r.v, p, 64);
  return r;
}
inline F load(const uint16_t* half) {
  F r;
  EACH r.v[i] = half_to_float(half[i]);
  return r;
}
inline F load_bf16(const uint16_t* p) {
  F r;
  EACH r.v[i] = bf16_to_float(p[i]);
  return r;
}
inline F load_part(const float* p, int n) {
  F r;
  EACH r.v[i] = i < n ? p[i] : 0;
  return r;
}
inline void store(float* p, F a) { __builtin_memcpy(p, a.v, 64); }
inline void store_part(float* p, F a, int n) {
  for (int i = 0; i < n; i++) p[i] = a.v[i];
}
inline F add(F a, F b) {
  F r;
  EACH r.v[i] = a.v[i] + b.v[i];
  return r;
}
inline F sub(F a, F b) {
  F r;
  EACH r.v[i] = a.v[i] - b.v[i];
  return r;
}
inline F mul(F a, F b) {
  F r;
  EACH r.v[i] = a.v[i] * b.v[i];
  return r;
}
inline F div(F a, F b) {
  F r;
  EACH r.v[i] = a.v[i] / b.v[i];
  return r;
}
inline F fma(F a, F b, F c) {
  F r;
  EACH r.v[i] = fma1(a.v[i], b.v[i], c.v[i]);
  return r;
}
inline F max(F a, F b) {
  F r;
  EACH r.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
  return r;
}
inline F abs(F a) {
  F r;
  EACH r.v[i] = __builtin_fabsf(a.v[i]);
  return r;
}
// Lanes begin..end-1 of a, `other` elsewhere.
inline F keep(F a, int begin, int end, float other) {
  F r;
  EACH r.v[i] = i >= begin && i < end ? a.v[i] : other;
  return r;
}

inline float tree_sum(F a) {
  for (int n = 8; n; n /= 2)
    for (int i = 0; i < n; i++) a.v[i] += a.v[i + n];
  return a.v[0];
}
inline float tree_max(F a) {
  for (int n = 8; n; n /= 2)
    for (int i = 0; i < n; i++) a.v[i] = a.v[i] > a.v[i + n] ? a.v[i] : a.v[i + n];
  return a.v[0];
}
inline float square_root(float x) { return __builtin_sqrtf(x); }

inline I splat(int32_t x) {
  I r;
  EACH r.v[i] = x;
  return r;
}
inline I load(const int32_t* p) {
  I r;
  __builtin_memcpy(r.v, p, 64);
  return r;
}
inline void store(int32_t* p, I a) { __builtin_memcpy(p, a.v, 64); }
inline I load_i8(const int8_t* p) {
  I r;
  EACH r.v[i] = p[i];
  return r;
}
inline I load_u8(const uint8_t* p) {
  I r;
  EACH r.v[i] = p[i];
  return r;
}
// Each byte as both 16-bit halves of its lane.
inline I load_u8_twice(const uint8_t* p) {
  I r;
  EACH r.v[i] = p[i] * 0x10001;
  return r;
}
template <int By>
inline I shift_right(I a) {
  EACH a.v[i] >>= By;
  return a;
}
template <int By>
inline I shift_left(I a) {
  EACH a.v[i] = int32_t(uint32_t(a.v[i]) << By);
  return a;
}
// Bits From..From+3 of every lane.
template <int From>
inline I nibble(I a) {
  EACH a.v[i] = a.v[i] >> From & 15;
  return a;
}
template <int From>
inline F nibble_less_8(I a) {
  F r;
  EACH r.v[i] = float((a.v[i] >> From & 15) - 8);
  return r;
}
// The level that a nibble names, from 16.
template <int From>
inline F level_of_nibble(I a, const int8_t* levels) {
  F r;
  EACH r.v[i] = float(levels[a.v[i] >> From & 15]);
  return r;
}
// Bit `from` of every lane, as 0 or 1.
inline I bit_of(I a, int from) {
  EACH a.v[i] = a.v[i] >> from & 1;
  return a;
}
// x in the lanes whose bit is set, else 0.
inline F where_bits(uint32_t bits, float x) {
  F r;
  EACH r.v[i] = bits >> i & 1 ? x : 0.f;
  return r;
}
inline void store_i8(int8_t* p, I a) { EACH p[i] = int8_t(a.v[i]); }
inline I add(I a, I b) {
  I r;
  EACH r.v[i] = a.v[i] + b.v[i];
  return r;
}
inline I sub(I a, I b) {
  I r;
  EACH r.v[i] = a.v[i] - b.v[i];
  return r;
}
inline I mul(I a, I b) {
  I r;
  EACH r.v[i] = a.v[i] * b.v[i];
  return r;
}
inline int32_t sum(I a) {
  int32_t s = 0;
  EACH s += a.v[i];
  return s;
}
inline F to_float(I a) {
  F r;
  EACH r.v[i] = float(a.v[i]);
  return r;
}
// Nearest integer, ties to even, by the float format itself; |a| < 2^22.
inline F round(F a) {
  F r;
  EACH r.v[i] = (a.v[i] + 12582912.f) - 12582912.f;
  return r;
}
inline I to_int(F a) {
  I r;
  EACH r.v[i] = int32_t(a.v[i]);
  return r;
}
// a * 2^n for whole n in -126..127.
inline F scale_by_power(F a, F n) {
  F r;
  EACH {
    uint32_t u = uint32_t(int32_t(n.v[i]) + 127) << 23;
    float p;
    __builtin_memcpy(&p, &u, 4);
    r.v[i] = a.v[i] * p;
  }
  return r;
}

inline Codes load_codes(const uint8_t* p) {
  Codes r;
  __builtin_memcpy(r.v, p, 64);
  return r;
}
inline void store_codes(uint8_t* p, Codes c) { __builtin_memcpy(p, c.v, 64); }
// Width bits of every byte, from bit From on, moved to bit To; the others are zero.
template <int From, int To, int Width>
inline Codes field(Codes c) {
  EACH_CODE c.v[i] = uint8_t((c.v[i] >> From & ((1 << Width) - 1)) << To);
  return c;
}
// The same from a bit that is known when it runs.
template <int To, int Width>
inline Codes field_from(Codes c, int from) {
  EACH_CODE c.v[i] = uint8_t((c.v[i] >> from & ((1 << Width) - 1)) << To);
  return c;
}
// Entry c of a table of 16, for codes below 16.
inline Codes lookup(Codes c, const uint8_t* table) {
  EACH_CODE c.v[i] = table[c.v[i]];
  return c;
}
inline Codes either(Codes a, Codes b) {
  EACH_CODE a.v[i] |= b.v[i];
  return a;
}
// Byte q of every lane in all four.
inline Codes spread(Codes c, int q) {
  Codes r;
  EACH_CODE r.v[i] = c.v[i / 4 * 4 + q];
  return r;
}

// acc[r] + the sum over j < 4 of codes[4 r + j] * a_j; `a` holds the same four signed bytes in every lane.
// Codes are at most kMaxCode.
inline I dot(I acc, Codes c, I a) {
  for (int j = 0; j < 4; j++) EACH acc.v[i] += int32_t(c.v[4 * i + j]) * int8_t(uint32_t(a.v[i]) >> (8 * j));
  return acc;
}
// The same with 8-bit codes, read as code - 128, or as code - (128 - kWideZero): the sum then starts with the
// difference, -kWideZero times the sum of the a's.
constexpr int kWideZero = 0;
constexpr int kMaxCode = 127;  // that dot() takes
inline I dot_wide(I acc, Codes c, I a) {
  for (int j = 0; j < 4; j++)
    EACH acc.v[i] += (int32_t(c.v[4 * i + j]) - 128) * int8_t(uint32_t(a.v[i]) >> (8 * j));
  return acc;
}

// Two small numbers in each lane, as i16; and acc + the products of both with those in x.
inline I pairs(I low, I high) {
  EACH low.v[i] = int32_t((uint32_t(low.v[i]) & 0xffff) | uint32_t(high.v[i]) << 16);
  return low;
}
inline I dot_pairs(I acc, I p, I x) {
  EACH acc.v[i] += int16_t(p.v[i]) * int16_t(x.v[i]) + (p.v[i] >> 16) * (x.v[i] >> 16);
  return acc;
}

// Where dot products of bytes come as 16-bit sums of two, some of those may be added before they are widened:
// kShortSums, and then short_dot(), add() and widen(); and pairs_of_bytes(): of each lane the bytes 0 and 2,
// less Zero, as signed numbers of 16 bits, and the bytes 1 and 3.
#include "backends/cpu/variants/no_short_sums.inc"

#undef EACH
#undef EACH_CODE

// For tiles: code - zero in each byte, as a signed number.
inline Codes less(Codes c, int zero) {
  for (uint8_t& code : c.v) code = uint8_t(code - zero);
  return c;
}

}  // namespace
}  // namespace CPU_VARIANT
