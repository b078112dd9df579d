// Sixteen lanes as four registers of NEON (ARMv8.0, which always has FMA and the conversion of halves); with
// dotprod or i8mm the dot product of bytes is one instruction per register. Meanings:
// variants/baseline/vec.h.
#pragma once
#include <arm_neon.h>
#include <stdint.h>

namespace CPU_VARIANT {
namespace {

#if defined(__ARM_FEATURE_MATMUL_INT8)
constexpr int16_t kRank = 40;
#elif defined(__ARM_FEATURE_DOTPROD)
constexpr int16_t kRank = 30;
#else
constexpr int16_t kRank = 20;
#endif
// Rows of activations that share a load of the weights, and tiles that share a load of the activations: as
// registers allow.
// Products of few rows (kernels/few_rows.h): kFewTogether rows at once, as many as registers allow;
// kFewestTogether rows in the smallest group.
constexpr int kRowsAtOnce = 4, kTilesTogether = 1, kFewTogether = 4, kFewestTogether = 4;

// For attention with 1, 2, 4 .. queries: the number of cache vectors read together.
constexpr int kVectorsOfQueries[] = {2, 2, 1};

struct F {
  float32x4_t a, b, c, d;
};
struct I {
  int32x4_t a, b, c, d;
};
struct Codes {
  uint8x16_t a, b, c, d;
};

// `f` of the four registers of each operand.
template <class R = F, class X, class Each>
inline R each(X x, Each f) {
  return {f(x.a), f(x.b), f(x.c), f(x.d)};
}
template <class R = F, class X, class Y, class Each>
inline R each(X x, Y y, Each f) {
  return {f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d)};
}
template <class R = F, class X, class Y, class Z, class Each>
inline R each(X x, Y y, Z z, Each f) {
  return {f(x.a, y.a, z.a), f(x.b, y.b, z.b), f(x.c, y.c, z.c), f(x.d, y.d, z.d)};
}

inline F splat(float x) {
  float32x4_t v = vdupq_n_f32(x);
  return {v, v, v, v};
}
inline F load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
inline float32x4_t half(const uint16_t* p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
inline F load(const uint16_t* p) { return {half(p), half(p + 4), half(p + 8), half(p + 12)}; }
inline float32x4_t bf16(const uint16_t* p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
inline F load_bf16(const uint16_t* p) { return {bf16(p), bf16(p + 4), bf16(p + 8), bf16(p + 12)}; }
inline void store(float* p, F x) {
  vst1q_f32(p, x.a), vst1q_f32(p + 4, x.b), vst1q_f32(p + 8, x.c), vst1q_f32(p + 12, x.d);
}
inline F load_part(const float* p, int n) {
  if (n >= 16) return load(p);
  float part[16] = {};
  for (int i = 0; i < n; i++) part[i] = p[i];
  return load(part);
}
inline void store_part(float* p, F x, int n) {
  if (n >= 16) return store(p, x);
  float part[16];
  store(part, x);
  for (int i = 0; i < n; i++) p[i] = part[i];
}
inline F add(F x, F y) {
  return each(x, y, [](auto p, auto q) { return vaddq_f32(p, q); });
}
inline F sub(F x, F y) {
  return each(x, y, [](auto p, auto q) { return vsubq_f32(p, q); });
}
inline F mul(F x, F y) {
  return each(x, y, [](auto p, auto q) { return vmulq_f32(p, q); });
}
inline F div(F x, F y) {
  return each(x, y, [](auto p, auto q) { return vdivq_f32(p, q); });
}
inline F fma(F x, F y, F z) {
  return each(x, y, z, [](auto p, auto q, auto r) { return vfmaq_f32(r, p, q); });
}
// Not vmaxq_f32, which gives a NaN wherever there is one: the meaning is x > y ? x : y.
inline float32x4_t larger(float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
inline F max(F x, F y) {
  return each(x, y, [](auto p, auto q) { return larger(p, q); });
}
inline F abs(F x) {
  return each(x, [](auto p) { return vabsq_f32(p); });
}
inline float32x4_t keep(float32x4_t x, int first, int begin, int end, float other) {
  constexpr int32_t numbers[4] = {0, 1, 2, 3};
  int32x4_t lane = vaddq_s32(vld1q_s32(numbers), vdupq_n_s32(first));
  uint32x4_t kept = vandq_u32(vcgeq_s32(lane, vdupq_n_s32(begin)), vcltq_s32(lane, vdupq_n_s32(end)));
  return vbslq_f32(kept, x, vdupq_n_f32(other));
}
inline F keep(F x, int begin, int end, float other) {
  return {keep(x.a, 0, begin, end, other), keep(x.b, 4, begin, end, other), keep(x.c, 8, begin, end, other),
          keep(x.d, 12, begin, end, other)};
}

inline float tree_sum(F x) {
  float32x4_t e = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
  float32x2_t s = vadd_f32(vget_low_f32(e), vget_high_f32(e));
  return vget_lane_f32(s, 0) + vget_lane_f32(s, 1);
}
inline float tree_max(F x) {
  float32x4_t e = larger(larger(x.a, x.c), larger(x.b, x.d));
  float32x2_t low = vget_low_f32(e), high = vget_high_f32(e);
  float32x2_t s = vbsl_f32(vcgt_f32(low, high), low, high);
  float p = vget_lane_f32(s, 0), q = vget_lane_f32(s, 1);
  return p > q ? p : q;
}
inline float square_root(float x) { return vget_lane_f32(vsqrt_f32(vdup_n_f32(x)), 0); }

inline I splat(int32_t x) {
  int32x4_t v = vdupq_n_s32(x);
  return {v, v, v, v};
}
inline I load(const int32_t* p) {
  return {vld1q_s32(p), vld1q_s32(p + 4), vld1q_s32(p + 8), vld1q_s32(p + 12)};
}
inline void store(int32_t* p, I x) {
  vst1q_s32(p, x.a), vst1q_s32(p + 4, x.b), vst1q_s32(p + 8, x.c), vst1q_s32(p + 12, x.d);
}
inline I load_i8(const int8_t* p) {
  int8x16_t v = vld1q_s8(p);
  int16x8_t low = vmovl_s8(vget_low_s8(v)), high = vmovl_high_s8(v);
  return {vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)),
          vmovl_high_s16(high)};
}
inline I load_u8(const uint8_t* p) {
  uint8x16_t v = vld1q_u8(p);
  uint16x8_t low = vmovl_u8(vget_low_u8(v)), high = vmovl_high_u8(v);
  return {vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))), vreinterpretq_s32_u32(vmovl_high_u16(low)),
          vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))), vreinterpretq_s32_u32(vmovl_high_u16(high))};
}
inline I load_u8_twice(const uint8_t* p) {
  return each<I>(load_u8(p), [](int32x4_t v) { return vsliq_n_s32(v, v, 16); });
}
template <int By>
inline I shift_right(I x) {
  if constexpr (By == 0) return x;
  else return each<I>(x, [](int32x4_t v) { return vshrq_n_s32(v, By); });
}
template <int By>
inline I shift_left(I x) {
  return each<I>(x, [](int32x4_t v) { return vshlq_n_s32(v, By); });
}
template <int From>
inline I nibble(I x) {
  return each<I>(x, [](int32x4_t v) {
    if constexpr (From > 0) v = vshrq_n_s32(v, From);
    return vandq_s32(v, vdupq_n_s32(15));
  });
}
template <int From>
inline F nibble_less_8(I x) {
  return each(nibble<From>(x), [](int32x4_t v) { return vcvtq_f32_s32(vsubq_s32(v, vdupq_n_s32(8))); });
}
// The byte on top of each lane is looked up; those below it, which name no entry, become 0.
template <int From>
inline F level_of_nibble(I x, const int8_t* levels) {
  const int8x16_t all = vld1q_s8(levels);
  return each(nibble<From>(x), [all](int32x4_t v) {
    const uint8x16_t top = vreinterpretq_u8_s32(vorrq_s32(vshlq_n_s32(v, 24), vdupq_n_s32(0x00ffffff)));
    return vcvtq_f32_s32(vshrq_n_s32(vreinterpretq_s32_s8(vqtbl1q_s8(all, top)), 24));
  });
}
inline I bit_of(I x, int from) {
  const int32x4_t by = vdupq_n_s32(-from);
  return each<I>(x, [by](int32x4_t v) { return vandq_s32(vshlq_s32(v, by), vdupq_n_s32(1)); });
}
inline float32x4_t where_bits(uint32_t bits, int first, float x) {
  constexpr uint32_t lanes[4] = {1, 2, 4, 8};
  const uint32x4_t set = vtstq_u32(vdupq_n_u32(bits >> first), vld1q_u32(lanes));
  return vreinterpretq_f32_u32(vandq_u32(set, vreinterpretq_u32_f32(vdupq_n_f32(x))));
}
inline F where_bits(uint32_t bits, float x) {
  return {where_bits(bits, 0, x), where_bits(bits, 4, x), where_bits(bits, 8, x), where_bits(bits, 12, x)};
}
inline void store_i8(int8_t* p, I x) {
  int16x8_t low = vmovn_high_s32(vmovn_s32(x.a), x.b), high = vmovn_high_s32(vmovn_s32(x.c), x.d);
  vst1q_s8(p, vmovn_high_s16(vmovn_s16(low), high));
}
inline I add(I x, I y) {
  return each<I>(x, y, [](auto p, auto q) { return vaddq_s32(p, q); });
}
inline I sub(I x, I y) {
  return each<I>(x, y, [](auto p, auto q) { return vsubq_s32(p, q); });
}
inline I mul(I x, I y) {
  return each<I>(x, y, [](auto p, auto q) { return vmulq_s32(p, q); });
}
inline int32_t sum(I x) { return vaddvq_s32(vaddq_s32(vaddq_s32(x.a, x.b), vaddq_s32(x.c, x.d))); }
inline F to_float(I x) {
  return each(x, [](auto p) { return vcvtq_f32_s32(p); });
}
inline F round(F x) {
  return each(x, [](auto p) { return vrndnq_f32(p); });
}
inline I to_int(F x) {
  return each<I>(x, [](auto p) { return vcvtq_s32_f32(p); });
}
inline F scale_by_power(F x, F n) {
  return each(x, n, [](float32x4_t v, float32x4_t m) {
    int32x4_t exponent = vaddq_s32(vcvtq_s32_f32(m), vdupq_n_s32(127));
    return vmulq_f32(v, vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23)));
  });
}

inline Codes load_codes(const uint8_t* p) {
  return {vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)};
}
inline void store_codes(uint8_t* p, Codes c) {
  vst1q_u8(p, c.a), vst1q_u8(p + 16, c.b), vst1q_u8(p + 32, c.c), vst1q_u8(p + 48, c.d);
}
template <int From, int To, int Width>
inline Codes field(Codes c) {
  return each<Codes>(c, [](uint8x16_t v) {
    if constexpr (From > To) v = vshrq_n_u8(v, From - To);
    if constexpr (From < To) v = vshlq_n_u8(v, To - From);
    if constexpr (To == 0 && From + Width == 8) return v;  // zeros came in from above
    else return vandq_u8(v, vdupq_n_u8(((1 << Width) - 1) << To));
  });
}
template <int To, int Width>
inline Codes field_from(Codes c, int from) {
  const int8x16_t by = vdupq_n_s8(int8_t(-from));
  return field<0, To, Width>(each<Codes>(c, [by](uint8x16_t v) { return vshlq_u8(v, by); }));
}
inline Codes lookup(Codes c, const uint8_t* table) {
  uint8x16_t t = vld1q_u8(table);
  return {vqtbl1q_u8(t, c.a), vqtbl1q_u8(t, c.b), vqtbl1q_u8(t, c.c), vqtbl1q_u8(t, c.d)};
}
inline Codes either(Codes x, Codes y) {
  return each<Codes>(x, y, [](auto p, auto q) { return vorrq_u8(p, q); });
}
inline Codes spread(Codes c, int q) {
  constexpr uint8_t first[16] = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
  const uint8x16_t from = vaddq_u8(vld1q_u8(first), vdupq_n_u8(uint8_t(q)));
  return each<Codes>(c, [from](uint8x16_t v) { return vqtbl1q_u8(v, from); });
}

// Codes below 128 are the same numbers with a sign.
inline int8x16_t as_signed(uint8x16_t codes) { return vreinterpretq_s8_u8(codes); }
inline int32x4_t dot_signed(int32x4_t acc, int8x16_t codes, int8x16_t a) {
#if defined(__ARM_FEATURE_DOTPROD)
  return vdotq_s32(acc, codes, a);
#else  // pairs stay within 2 * 128 * 127 = 32512: they fit 16 bits
  int16x8_t low = vmull_s8(vget_low_s8(codes), vget_low_s8(a)), high = vmull_high_s8(codes, a);
  return vpadalq_s16(acc, vpaddq_s16(low, high));
#endif
}

#if defined(__ARM_FEATURE_MATMUL_INT8)
inline I dot(I acc, Codes c, I a) {
  return each<I>(acc, c, a, [](int32x4_t sum, uint8x16_t codes, int32x4_t x) {
    return vusdotq_s32(sum, codes, vreinterpretq_s8_s32(x));
  });
}
// sum((code - 128) a) = sum(code a) - 128 sum(a)
constexpr int kWideZero = 128, kMaxCode = 255;
inline I dot_wide(I acc, Codes c, I a) { return dot(acc, c, a); }
#else
inline I dot(I acc, Codes c, I a) {
  return each<I>(acc, c, a, [](int32x4_t sum, uint8x16_t codes, int32x4_t x) {
    return dot_signed(sum, as_signed(codes), vreinterpretq_s8_s32(x));
  });
}
constexpr int kWideZero = 0, kMaxCode = 127;
inline I dot_wide(I acc, Codes c, I a) {
  return each<I>(acc, c, a, [](int32x4_t sum, uint8x16_t codes, int32x4_t x) {
    return dot_signed(sum, as_signed(veorq_u8(codes, vdupq_n_u8(128))), vreinterpretq_s8_s32(x));
  });
}
#endif

inline I pairs(I low, I high) {
  return each<I>(low, high, [](int32x4_t p, int32x4_t q) { return vsliq_n_s32(p, q, 16); });
}
inline I dot_pairs(I acc, I p, I x) {
  return each<I>(acc, p, x, [](int32x4_t sum, int32x4_t two, int32x4_t with) {
    int16x8_t u = vreinterpretq_s16_s32(two), v = vreinterpretq_s16_s32(with);
    return vaddq_s32(sum, vpaddq_s32(vmull_s16(vget_low_s16(u), vget_low_s16(v)), vmull_high_s16(u, v)));
  });
}
#include "backends/cpu/variants/no_short_sums.inc"

}  // namespace
}  // namespace CPU_VARIANT
