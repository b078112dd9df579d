// Sixteen lanes as one register of AVX-512 (F, BW, VL, DQ). Meanings: variants/baseline/vec.h.
#pragma once
#include <immintrin.h>
#include <stdint.h>

namespace CPU_VARIANT {
namespace {

// kRowsAtOnce rows of activations share a load of the weights, and kTilesTogether tiles a load of the
// activations: as registers allow. Both share if a product is one instruction, because a core can then
// execute as many products as loads. Products of few rows (kernels/few_rows.h): kFewTogether rows at once, as
// many as registers allow; kFewestTogether rows in the smallest group.
#if defined(__AVX512VNNI__)
constexpr int16_t kRank = 40;
constexpr int kRowsAtOnce = 6, kTilesTogether = 2, kFewTogether = 8, kFewestTogether = 2;
#else
constexpr int16_t kRank = 30;
constexpr int kRowsAtOnce = 12, kTilesTogether = 1, kFewTogether = 4, kFewestTogether = 4;
#endif

// For attention with 1, 2, 4 .. queries: the number of cache vectors read together.
constexpr int kVectorsOfQueries[] = {4, 4, 4, 1, 1};

struct F {
  __m512 v;
};
struct I {
  __m512i v;
};
struct Codes {
  __m512i v;
};

// See kernels/few_products.h.
inline I here(I x) {
  asm volatile("" : "+v"(x.v));
  return x;
}
inline const uint8_t* here(const uint8_t* p) {
  asm volatile("" : "+r"(p));
  return p;
}
inline Codes here(Codes c) {
  asm volatile("" : "+v"(c.v));
  return c;
}
inline __mmask16 lanes_below(int n) {
  return n >= 16 ? __mmask16(0xffff) : n <= 0 ? __mmask16(0) : __mmask16((1u << n) - 1);
}
// Through the integer form: from memory, vpbroadcastd is only a load, while vbroadcastss also uses the
// shuffle units on Zen 4 (bench/cycles.py).
inline F splat(float x) { return {_mm512_castsi512_ps(_mm512_set1_epi32(__builtin_bit_cast(int, x)))}; }
inline F load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline __m256i half_register(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline F load(const uint16_t* half) { return {_mm512_cvtph_ps(half_register(half))}; }
inline F load_bf16(const uint16_t* p) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half_register(p)), 16))};
}
inline F load_part(const float* p, int n) { return {_mm512_maskz_loadu_ps(lanes_below(n), p)}; }
inline void store(float* p, F x) { _mm512_storeu_ps(p, x.v); }
inline void store_part(float* p, F x, int n) { _mm512_mask_storeu_ps(p, lanes_below(n), x.v); }
inline F add(F x, F y) { return {_mm512_add_ps(x.v, y.v)}; }
inline F sub(F x, F y) { return {_mm512_sub_ps(x.v, y.v)}; }
inline F mul(F x, F y) { return {_mm512_mul_ps(x.v, y.v)}; }
inline F div(F x, F y) { return {_mm512_div_ps(x.v, y.v)}; }
inline F fma(F x, F y, F z) { return {_mm512_fmadd_ps(x.v, y.v, z.v)}; }
inline F max(F x, F y) { return {_mm512_max_ps(x.v, y.v)}; }
inline F abs(F x) { return {_mm512_abs_ps(x.v)}; }
inline F keep(F x, int begin, int end, float other) {
  return {
      _mm512_mask_blend_ps(__mmask16(lanes_below(end) & ~lanes_below(begin)), _mm512_set1_ps(other), x.v)};
}

inline __m256 upper(__m512 x) { return _mm512_extractf32x8_ps(x, 1); }
inline float tree_sum(F x) {
  __m256 e = _mm256_add_ps(_mm512_castps512_ps256(x.v), upper(x.v));
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
inline float tree_max(F x) {
  __m256 e = _mm256_max_ps(_mm512_castps512_ps256(x.v), upper(x.v));
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
inline float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

inline I splat(int32_t x) { return {_mm512_set1_epi32(x)}; }
inline I load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
inline void store(int32_t* p, I x) { _mm512_storeu_si512(p, x.v); }
inline I load_i8(const int8_t* p) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline I load_u8(const uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline I load_u8_twice(const uint8_t* p) {
  const __m512i all = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m512i twice = _mm512_set_epi32(int(0x800f800f), int(0x800e800e), int(0x800d800d), int(0x800c800c),
                                         int(0x800b800b), int(0x800a800a), int(0x80098009), int(0x80088008),
                                         int(0x80078007), int(0x80068006), int(0x80058005), int(0x80048004),
                                         int(0x80038003), int(0x80028002), int(0x80018001), int(0x80008000));
  return {_mm512_shuffle_epi8(all, twice)};
}
template <int By>
inline I shift_right(I x) {
  if constexpr (By == 0) return x;
  else return {_mm512_srai_epi32(x.v, By)};
}
template <int By>
inline I shift_left(I x) {
  return {_mm512_slli_epi32(x.v, By)};
}
template <int From>
inline I nibble(I x) {
  return {_mm512_and_si512(_mm512_srli_epi32(x.v, From), _mm512_set1_epi32(15))};
}
template <int From>
inline F nibble_less_8(I x) {  // the index is taken modulo 16
  if constexpr (From > 0) x.v = _mm512_srli_epi32(x.v, From);
  return {_mm512_permutexvar_ps(x.v, _mm512_set_ps(7, 6, 5, 4, 3, 2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8))};
}
template <int From>
inline F level_of_nibble(I x, const int8_t* levels) {  // the index is taken modulo 16
  const __m512 all = _mm512_cvtepi32_ps(load_i8(levels).v);
  if constexpr (From > 0) x.v = _mm512_srli_epi32(x.v, From);
  return {_mm512_permutexvar_ps(x.v, all)};
}
inline I bit_of(I x, int from) {
  return {_mm512_and_si512(_mm512_srl_epi32(x.v, _mm_cvtsi32_si128(from)), _mm512_set1_epi32(1))};
}
inline F where_bits(uint32_t bits, float x) {
  return {_mm512_maskz_mov_ps(__mmask16(bits), _mm512_set1_ps(x))};
}
inline void store_i8(int8_t* p, I x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x.v));
}
inline I add(I x, I y) { return {_mm512_add_epi32(x.v, y.v)}; }
inline I sub(I x, I y) { return {_mm512_sub_epi32(x.v, y.v)}; }
inline I mul(I x, I y) { return {_mm512_mullo_epi32(x.v, y.v)}; }
inline int32_t sum(I x) { return _mm512_reduce_add_epi32(x.v); }
inline F to_float(I x) { return {_mm512_cvtepi32_ps(x.v)}; }
inline F round(F x) { return {_mm512_roundscale_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline I to_int(F x) { return {_mm512_cvttps_epi32(x.v)}; }
inline F scale_by_power(F x, F n) {
  __m512i e = _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvttps_epi32(n.v), _mm512_set1_epi32(127)), 23);
  return {_mm512_mul_ps(x.v, _mm512_castsi512_ps(e))};
}

inline Codes load_codes(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
inline void store_codes(uint8_t* p, Codes c) { _mm512_storeu_si512(p, c.v); }
template <int From, int To, int Width>
inline Codes field(Codes c) {
  if constexpr (From > To) c.v = _mm512_srli_epi16(c.v, From - To);
  if constexpr (From < To) c.v = _mm512_slli_epi16(c.v, To - From);
  return {_mm512_and_si512(c.v, _mm512_set1_epi8(char(((1 << Width) - 1) << To)))};
}
template <int To, int Width>
inline Codes field_from(Codes c, int from) {
  return field<0, To, Width>({_mm512_srl_epi16(c.v, _mm_cvtsi32_si128(from))});
}
inline Codes lookup(Codes c, const uint8_t* table) {
  __m128i t = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(t), c.v)};
}
inline Codes either(Codes x, Codes y) { return {_mm512_or_si512(x.v, y.v)}; }
inline Codes spread(Codes c, int q) {
  const __m512i first = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
  return {_mm512_shuffle_epi8(c.v, _mm512_or_si512(first, _mm512_set1_epi8(char(q))))};
}

inline I pairs(I low, I high) {
  return {_mm512_or_si512(_mm512_and_si512(low.v, _mm512_set1_epi32(0xffff)), _mm512_slli_epi32(high.v, 16))};
}

#if defined(__AVX512VNNI__)
inline I dot(I acc, Codes c, I a) { return {_mm512_dpbusd_epi32(acc.v, c.v, a.v)}; }
inline I dot_pairs(I acc, I p, I x) { return {_mm512_dpwssd_epi32(acc.v, p.v, x.v)}; }
// sum((code - 128) a) = sum(code a) - 128 sum(a)
constexpr int kWideZero = 128, kMaxCode = 255;
inline I dot_wide(I acc, Codes c, I a) { return dot(acc, c, a); }
// See kernels/few_products.h: compilers load the word first, an instruction more for each product.
inline I dot_from(I acc, Codes c, const uint8_t* word) {
  using Word [[gnu::aligned(1), gnu::may_alias]] = int32_t;
  asm volatile("vpdpbusd %2%{1to16%}, %1, %0"
               : "+v"(acc.v)
               : "v"(c.v), "m"(*reinterpret_cast<const Word*>(word)));
  return acc;
}
#include "backends/cpu/variants/no_short_sums.inc"
#else
inline __m512i added(__m512i sum) {  // see variants/avx2/vec.h
  asm("" : "+v"(sum));
  return sum;
}
inline I dot(I acc, Codes c, I a) {  // pairs stay below 2 * 128 * 127 = 32512: nothing saturates
  return {added(
      _mm512_add_epi32(acc.v, _mm512_madd_epi16(_mm512_maddubs_epi16(c.v, a.v), _mm512_set1_epi16(1))))};
}
inline I dot_pairs(I acc, I p, I x) { return {added(_mm512_add_epi32(acc.v, _mm512_madd_epi16(p.v, x.v)))}; }
constexpr int kWideZero = 0, kMaxCode = 128;
inline I dot_wide(I acc, Codes c, I a) {
  __m512i w = _mm512_xor_si512(c.v, _mm512_set1_epi8(-128));
  __m512i signed_a = _mm512_mask_sub_epi8(a.v, _mm512_movepi8_mask(w), _mm512_setzero_si512(), a.v);
  return dot(acc, {_mm512_abs_epi8(w)}, {signed_a});
}
constexpr bool kShortSums = true;
struct ShortSums {
  __m512i v;
};
inline ShortSums short_dot(Codes c, I a) { return {_mm512_maddubs_epi16(c.v, a.v)}; }
inline ShortSums add(ShortSums x, ShortSums y) { return {added(_mm512_add_epi16(x.v, y.v))}; }
inline I widen(ShortSums s) { return {_mm512_madd_epi16(s.v, _mm512_set1_epi16(1))}; }
struct PairsOfBytes {
  I first, second;
};
template <int Zero>
inline PairsOfBytes pairs_of_bytes(Codes c) {
  const __m512i v = _mm512_sub_epi8(c.v, _mm512_set1_epi8(char(Zero)));
  return {{_mm512_srai_epi16(_mm512_slli_epi16(v, 8), 8)}, {_mm512_srai_epi16(v, 8)}};
}
#endif

// For tiles: code - zero in each byte, as a signed number.
inline Codes less(Codes c, int zero) { return {_mm512_sub_epi8(c.v, _mm512_set1_epi8(char(zero)))}; }

}  // namespace
}  // namespace CPU_VARIANT
