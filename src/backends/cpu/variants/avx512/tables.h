// Tables of sums for products by table look-up, by pshufb of 512 bits: each of its quarters has a table of
// its own. Meanings: variants/baseline/tables.h.
#pragma once
#include <immintrin.h>
#include <stdint.h>

namespace CPU_VARIANT {
namespace {

constexpr int kTilesOfLookUp = 4;

// The lower and the upper eight rows; of a column in each quarter.
struct TableSums {
  __m512i a, b;
};
struct Tables {
  __m512i low, high;
};
inline Tables load_tables(const uint8_t* p) { return {_mm512_load_si512(p), _mm512_load_si512(p + 64)}; }
inline void store_table(uint8_t* tables, int j, I entries) {
  _mm_store_si128(reinterpret_cast<__m128i*>(tables + 16 * j), _mm512_cvtepi32_epi8(entries.v));
  _mm_store_si128(reinterpret_cast<__m128i*>(tables + 64 + 16 * j),
                  _mm512_cvtepi32_epi8(_mm512_srli_epi32(entries.v, 8)));
}
inline Codes load_columns(const uint8_t* p) {
  const __m512i by_column = _mm512_broadcast_i32x4(
                    _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)),
                gathered = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return {_mm512_permutexvar_epi32(gathered, _mm512_shuffle_epi8(load_codes(p).v, by_column))};
}
inline void add_entries(TableSums& sums, const Tables& tables, Codes c) {
  const __m512i l = _mm512_shuffle_epi8(tables.low, c.v), h = _mm512_shuffle_epi8(tables.high, c.v);
  sums.a = _mm512_add_epi16(sums.a, _mm512_unpacklo_epi8(l, h));
  sums.b = _mm512_add_epi16(sums.b, _mm512_unpackhi_epi8(l, h));
}
inline void add_signed_entries(TableSums& sums, const Tables& tables, Codes c) {
  const __m512i index = _mm512_abs_epi8(c.v), l = _mm512_shuffle_epi8(tables.low, index),
                h = _mm512_shuffle_epi8(tables.high, index);
  const auto add = [](__m512i sum, __m512i entries, __m512i signs) {
    const __mmask32 negative = _mm512_movepi16_mask(signs);
    return _mm512_add_epi16(sum, _mm512_mask_sub_epi16(entries, negative, _mm512_setzero_si512(), entries));
  };
  sums.a = add(sums.a, _mm512_unpacklo_epi8(l, h), _mm512_unpacklo_epi8(c.v, c.v));
  sums.b = add(sums.b, _mm512_unpackhi_epi8(l, h), _mm512_unpackhi_epi8(c.v, c.v));
}
inline Codes sum_of_codes(Codes x, Codes y) { return {_mm512_add_epi8(x.v, y.v)}; }
// Two quarters of 32 pairs each are added in 16 bits.
inline __m256i sum_of_quarters(__m512i x) {
  const __m256i two = _mm256_add_epi16(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  return _mm256_add_epi32(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(two)),
                          _mm256_cvtepi16_epi32(_mm256_extracti128_si256(two, 1)));
}
inline I widen(TableSums sums) {
  return {_mm512_inserti64x4(_mm512_castsi256_si512(sum_of_quarters(sums.a)), sum_of_quarters(sums.b), 1)};
}

}  // namespace
}  // namespace CPU_VARIANT
