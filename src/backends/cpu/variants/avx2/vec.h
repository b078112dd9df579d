// Sixteen lanes as two registers of AVX2 (with FMA and F16C), and with AVX-VNNI a dot product of bytes in one
// instruction. Meanings: variants/baseline/vec.h.
#pragma once
#include <immintrin.h>
#include <stdint.h>

namespace CPU_VARIANT {
namespace {

// Rows of activations that share a load of the weights, and tiles that share a load of the activations: as
// registers allow. Six rows have twelve sums: enough for two units whose results take five cycles.
// Products of few rows (kernels/few_rows.h): kFewTogether rows at once, as many as registers allow;
// kFewestTogether rows in the smallest group.
#if defined(__AVXVNNI__)
constexpr int16_t kRank = 25;
constexpr int kRowsAtOnce = 6, kTilesTogether = 1, kFewTogether = 4, kFewestTogether = 4;
#else
constexpr int16_t kRank = 20;
constexpr int kRowsAtOnce = 4, kTilesTogether = 1, kFewTogether = 4, kFewestTogether = 4;
#endif

// For attention with 1, 2, 4 .. queries: the number of cache vectors read together.
constexpr int kVectorsOfQueries[] = {2, 2, 1};

struct F {
  __m256 a, b;
};
struct I {
  __m256i a, b;
};
struct Codes {
  __m256i a, b;
};

// Through the integer form: see variants/avx512/vec.h.
inline F splat(float x) {
  __m256 v = _mm256_castsi256_ps(_mm256_set1_epi32(__builtin_bit_cast(int, x)));
  return {v, v};
}
inline F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline __m128i half_register(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline F load(const uint16_t* half) {
  return {_mm256_cvtph_ps(half_register(half)), _mm256_cvtph_ps(half_register(half + 8))};
}
inline __m256 bf16(const uint16_t* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half_register(p)), 16));
}
inline F load_bf16(const uint16_t* p) { return {bf16(p), bf16(p + 8)}; }
inline __m256i lanes_below(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline F load_part(const float* p, int n) {
  return {_mm256_maskload_ps(p, lanes_below(n)), _mm256_maskload_ps(p + 8, lanes_below(n - 8))};
}
inline void store(float* p, F x) { _mm256_storeu_ps(p, x.a), _mm256_storeu_ps(p + 8, x.b); }
inline void store_part(float* p, F x, int n) {
  if (n >= 16) return store(p, x);  // AMD's masked stores take many cycles
  _mm256_maskstore_ps(p, lanes_below(n), x.a), _mm256_maskstore_ps(p + 8, lanes_below(n - 8), x.b);
}
inline F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
inline F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
inline F abs(F x) {
  __m256 s = _mm256_set1_ps(-0.f);
  return {_mm256_andnot_ps(s, x.a), _mm256_andnot_ps(s, x.b)};
}
inline F keep(F x, int begin, int end, float other) {
  __m256 o = _mm256_set1_ps(other);
  __m256i a = _mm256_andnot_si256(lanes_below(begin), lanes_below(end)),
          b = _mm256_andnot_si256(lanes_below(begin - 8), lanes_below(end - 8));
  return {_mm256_blendv_ps(o, x.a, _mm256_castsi256_ps(a)), _mm256_blendv_ps(o, x.b, _mm256_castsi256_ps(b))};
}

inline float tree_sum(F x) {
  __m256 e = _mm256_add_ps(x.a, x.b);
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
inline float tree_max(F x) {
  __m256 e = _mm256_max_ps(x.a, x.b);
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
inline float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

inline I splat(int32_t x) {
  __m256i v = _mm256_set1_epi32(x);
  return {v, v};
}
inline I load(const int32_t* p) {
  auto* q = reinterpret_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}
inline void store(int32_t* p, I x) {
  auto* q = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(q, x.a), _mm256_storeu_si256(q + 1, x.b);
}
inline I load_i8(const int8_t* p) {
  __m128i b = half_register(p);
  return {_mm256_cvtepi8_epi32(b), _mm256_cvtepi8_epi32(_mm_srli_si128(b, 8))};
}
inline I load_u8(const uint8_t* p) {
  __m128i b = half_register(p);
  return {_mm256_cvtepu8_epi32(b), _mm256_cvtepu8_epi32(_mm_srli_si128(b, 8))};
}
inline I load_u8_twice(const uint8_t* p) {
  const I x = load_u8(p);
  return {_mm256_or_si256(x.a, _mm256_slli_epi32(x.a, 16)), _mm256_or_si256(x.b, _mm256_slli_epi32(x.b, 16))};
}
template <int By>
inline I shift_right(I x) {
  if constexpr (By == 0) return x;
  else return {_mm256_srai_epi32(x.a, By), _mm256_srai_epi32(x.b, By)};
}
template <int By>
inline I shift_left(I x) {
  return {_mm256_slli_epi32(x.a, By), _mm256_slli_epi32(x.b, By)};
}
template <int From>
inline I nibble(I x) {
  __m256i m = _mm256_set1_epi32(15);
  return {_mm256_and_si256(_mm256_srli_epi32(x.a, From), m),
          _mm256_and_si256(_mm256_srli_epi32(x.b, From), m)};
}
template <int From>
inline F nibble_less_8(I x) {
  const I n = nibble<From>(x);
  const __m256i eight = _mm256_set1_epi32(8);
  return {_mm256_cvtepi32_ps(_mm256_sub_epi32(n.a, eight)), _mm256_cvtepi32_ps(_mm256_sub_epi32(n.b, eight))};
}
// The byte on top of each lane is looked up; those below it, with their highest bits set, become 0.
template <int From>
inline __m256 level_of_nibble(__m256i x, __m256i levels) {
  const __m256i top = _mm256_and_si256(_mm256_slli_epi32(x, 24 - From), _mm256_set1_epi32(0x0f000000));
  const __m256i level = _mm256_shuffle_epi8(levels, _mm256_or_si256(top, _mm256_set1_epi32(0x00808080)));
  return _mm256_cvtepi32_ps(_mm256_srai_epi32(level, 24));
}
template <int From>
inline F level_of_nibble(I x, const int8_t* levels) {
  const __m256i all = _mm256_broadcastsi128_si256(half_register(levels));
  return {level_of_nibble<From>(x.a, all), level_of_nibble<From>(x.b, all)};
}
inline I bit_of(I x, int from) {
  const __m128i by = _mm_cvtsi32_si128(from);
  const __m256i one = _mm256_set1_epi32(1);
  return {_mm256_and_si256(_mm256_srl_epi32(x.a, by), one), _mm256_and_si256(_mm256_srl_epi32(x.b, by), one)};
}
inline F where_bits(uint32_t bits, float x) {
  const __m256i all = _mm256_set1_epi32(int(bits)), to = _mm256_set1_epi32(__builtin_bit_cast(int, x));
  const __m256i a = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), b = _mm256_slli_epi32(a, 8);
  const __m256i in_a = _mm256_cmpeq_epi32(_mm256_and_si256(all, a), a),
                in_b = _mm256_cmpeq_epi32(_mm256_and_si256(all, b), b);
  return {_mm256_castsi256_ps(_mm256_and_si256(in_a, to)), _mm256_castsi256_ps(_mm256_and_si256(in_b, to))};
}
inline void store_i8(int8_t* p, I x) {
  __m256i w = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packs_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
}
inline I add(I x, I y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
inline I sub(I x, I y) { return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
inline I mul(I x, I y) { return {_mm256_mullo_epi32(x.a, y.a), _mm256_mullo_epi32(x.b, y.b)}; }
inline int32_t sum(I x) {
  __m256i e = _mm256_add_epi32(x.a, x.b);
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(e), _mm256_extracti128_si256(e, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}
inline F to_float(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
inline F round(F x) {
  constexpr int m = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(x.a, m), _mm256_round_ps(x.b, m)};
}
inline I to_int(F x) { return {_mm256_cvttps_epi32(x.a), _mm256_cvttps_epi32(x.b)}; }
inline __m256 power(__m256 n) {
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvttps_epi32(n), _mm256_set1_epi32(127)), 23));
}
inline F scale_by_power(F x, F n) { return {_mm256_mul_ps(x.a, power(n.a)), _mm256_mul_ps(x.b, power(n.b))}; }

inline Codes load_codes(const uint8_t* p) {
  auto* q = reinterpret_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}
inline void store_codes(uint8_t* p, Codes c) {
  auto* q = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(q, c.a), _mm256_storeu_si256(q + 1, c.b);
}
template <int From, int To, int Width>
inline __m256i field(__m256i c) {
  if constexpr (From > To) c = _mm256_srli_epi16(c, From - To);
  if constexpr (From < To) c = _mm256_slli_epi16(c, To - From);
  return _mm256_and_si256(c, _mm256_set1_epi8(char(((1 << Width) - 1) << To)));
}
template <int From, int To, int Width>
inline Codes field(Codes c) {
  return {field<From, To, Width>(c.a), field<From, To, Width>(c.b)};
}
template <int To, int Width>
inline Codes field_from(Codes c, int from) {
  const __m128i by = _mm_cvtsi32_si128(from);
  return field<0, To, Width>({_mm256_srl_epi16(c.a, by), _mm256_srl_epi16(c.b, by)});
}
inline Codes lookup(Codes c, const uint8_t* table) {
  __m256i t = _mm256_broadcastsi128_si256(half_register(table));
  return {_mm256_shuffle_epi8(t, c.a), _mm256_shuffle_epi8(t, c.b)};
}
inline Codes either(Codes x, Codes y) { return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)}; }
inline Codes spread(Codes c, int q) {
  const __m256i first = _mm256_broadcastsi128_si256(_mm_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0));
  const __m256i from = _mm256_or_si256(first, _mm256_set1_epi8(char(q)));
  return {_mm256_shuffle_epi8(c.a, from), _mm256_shuffle_epi8(c.b, from)};
}

inline __m256i pairs_half(__m256i low, __m256i high) {
  return _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(0xffff)), _mm256_slli_epi32(high, 16));
}
inline I pairs(I low, I high) { return {pairs_half(low.a, high.a), pairs_half(low.b, high.b)}; }

#if defined(__AVXVNNI__)
inline I dot(I acc, Codes c, I a) {
  return {_mm256_dpbusd_avx_epi32(acc.a, c.a, a.a), _mm256_dpbusd_avx_epi32(acc.b, c.b, a.b)};
}
inline I dot_pairs(I acc, I p, I x) {
  return {_mm256_dpwssd_avx_epi32(acc.a, p.a, x.a), _mm256_dpwssd_avx_epi32(acc.b, p.b, x.b)};
}
// As in variants/avx512/vec.h.
constexpr int kWideZero = 128, kMaxCode = 255;
inline I dot_wide(I acc, Codes c, I a) { return dot(acc, c, a); }
#include "backends/cpu/variants/no_short_sums.inc"
#else
// A sum that is added where it is written. Compilers would move the additions of many products to their end,
// with the products in memory until then.
inline __m256i added(__m256i sum) {
  asm("" : "+x"(sum));
  return sum;
}
// Also in the sum's own register: six rows leave none for a copy.
inline __m256i added(__m256i sum, __m256i x) {
  asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(x));
  return sum;
}
inline __m256i dot_half(__m256i acc, __m256i codes,
                        __m256i a) {  // pairs stay below 2 * 128 * 127 = 32512: nothing saturates
  return added(
      _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, a), _mm256_set1_epi16(1))));
}
inline I dot(I acc, Codes c, I a) { return {dot_half(acc.a, c.a, a.a), dot_half(acc.b, c.b, a.b)}; }
constexpr int kWideZero = 0, kMaxCode = 128;
inline __m256i dot_signed_half(__m256i acc, __m256i codes, __m256i a) {
  __m256i w = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
  return dot_half(acc, _mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
}
inline I dot_wide(I acc, Codes c, I a) {
  return {dot_signed_half(acc.a, c.a, a.a), dot_signed_half(acc.b, c.b, a.b)};
}
inline I dot_pairs(I acc, I p, I x) {
  return {added(acc.a, _mm256_madd_epi16(p.a, x.a)), added(acc.b, _mm256_madd_epi16(p.b, x.b))};
}

constexpr bool kShortSums = true;
struct ShortSums {
  __m256i a, b;
};
inline ShortSums short_dot(Codes c, I a) {
  return {_mm256_maddubs_epi16(c.a, a.a), _mm256_maddubs_epi16(c.b, a.b)};
}
inline ShortSums add(ShortSums x, ShortSums y) {
  return {added(_mm256_add_epi16(x.a, y.a)), added(_mm256_add_epi16(x.b, y.b))};
}
inline I widen(ShortSums s) {
  __m256i ones = _mm256_set1_epi16(1);
  return {_mm256_madd_epi16(s.a, ones), _mm256_madd_epi16(s.b, ones)};
}
struct PairsOfBytes {
  I first, second;
};
template <int Zero>
inline PairsOfBytes pairs_of_bytes(Codes c) {
  const __m256i zero = _mm256_set1_epi8(char(Zero));
  const __m256i a = _mm256_sub_epi8(c.a, zero), b = _mm256_sub_epi8(c.b, zero);
  return {{_mm256_srai_epi16(_mm256_slli_epi16(a, 8), 8), _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8)},
          {_mm256_srai_epi16(a, 8), _mm256_srai_epi16(b, 8)}};
}
#endif

}  // namespace
}  // namespace CPU_VARIANT
