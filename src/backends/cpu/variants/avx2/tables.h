// Tables of sums for products by table look-up, by pshufb of 256 bits: each of its halves has a table of its
// own. Meanings: variants/baseline/tables.h.
#pragma once
#include <immintrin.h>
#include <stdint.h>

namespace CPU_VARIANT {
namespace {

constexpr int kTilesOfLookUp = 2;

// Rows 0 to 3 and 8 to 11, and the others; of two columns in each half.
struct TableSums {
  __m256i a, b;
};
struct Tables {
  __m256i low[2], high[2];
};
inline __m256i two_tables(const uint8_t* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }
inline Tables load_tables(const uint8_t* p) {
  return {{two_tables(p), two_tables(p + 32)}, {two_tables(p + 64), two_tables(p + 96)}};
}
inline void store_table(uint8_t* tables, int j, I entries) {
  const __m256i w = _mm256_permute4x64_epi64(_mm256_packs_epi32(entries.a, entries.b), 0xd8),
                bytes = _mm256_permute4x64_epi64(
                    _mm256_packus_epi16(_mm256_and_si256(w, _mm256_set1_epi16(255)), _mm256_srli_epi16(w, 8)),
                    0xd8);
  _mm_store_si128(reinterpret_cast<__m128i*>(tables + 16 * j), _mm256_castsi256_si128(bytes));
  _mm_store_si128(reinterpret_cast<__m128i*>(tables + 64 + 16 * j), _mm256_extracti128_si256(bytes, 1));
}
// The first register: columns 0 and 1, of rows 0 to 3, 8 to 11, 4 to 7, 12 to 15.
inline Codes load_columns(const uint8_t* p) {
  const __m256i by_column =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const Codes c = load_codes(p);
  const __m256i a = _mm256_shuffle_epi8(c.a, by_column), b = _mm256_shuffle_epi8(c.b, by_column);
  return {_mm256_permute4x64_epi64(_mm256_unpacklo_epi32(a, b), 0xd8),
          _mm256_permute4x64_epi64(_mm256_unpackhi_epi32(a, b), 0xd8)};
}
inline void add_two_columns(TableSums& sums, __m256i low, __m256i high, __m256i c) {
  const __m256i l = _mm256_shuffle_epi8(low, c), h = _mm256_shuffle_epi8(high, c);
  sums.a = _mm256_add_epi16(sums.a, _mm256_unpacklo_epi8(l, h));
  sums.b = _mm256_add_epi16(sums.b, _mm256_unpackhi_epi8(l, h));
}
inline void add_entries(TableSums& sums, const Tables& tables, Codes c) {
  add_two_columns(sums, tables.low[0], tables.high[0], c.a);
  add_two_columns(sums, tables.low[1], tables.high[1], c.b);
}
inline void add_signed(TableSums& sums, __m256i low, __m256i high, __m256i c) {
  const __m256i index = _mm256_abs_epi8(c), l = _mm256_shuffle_epi8(low, index),
                h = _mm256_shuffle_epi8(high, index);
  const auto add = [](__m256i sum, __m256i entries, __m256i signs) {
    return _mm256_add_epi16(sum, _mm256_sign_epi16(entries, signs));  // entry 0 is 0
  };
  sums.a = add(sums.a, _mm256_unpacklo_epi8(l, h), _mm256_unpacklo_epi8(c, c));
  sums.b = add(sums.b, _mm256_unpackhi_epi8(l, h), _mm256_unpackhi_epi8(c, c));
}
inline void add_signed_entries(TableSums& sums, const Tables& tables, Codes c) {
  add_signed(sums, tables.low[0], tables.high[0], c.a);
  add_signed(sums, tables.low[1], tables.high[1], c.b);
}
inline Codes sum_of_codes(Codes x, Codes y) { return {_mm256_add_epi8(x.a, y.a), _mm256_add_epi8(x.b, y.b)}; }
inline __m256i sum_of_halves(__m256i x) {
  return _mm256_add_epi32(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(x)),
                          _mm256_cvtepi16_epi32(_mm256_extracti128_si256(x, 1)));
}
inline I widen(TableSums sums) {
  const __m256i a = sum_of_halves(sums.a), b = sum_of_halves(sums.b);
  return {_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31)};
}

}  // namespace
}  // namespace CPU_VARIANT
